"""Whatever these tests let decide, the cluster is compared before and after: decisions change nothing."""

from tests.support.worlds.pure import watch_decisions

watch_decisions()
