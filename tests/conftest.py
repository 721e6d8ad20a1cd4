"""No test asserts on time: an example of hypothesis may take as long as a busy machine needs."""

from hypothesis import settings

settings.register_profile("lava", deadline=None)
settings.load_profile("lava")
