"""Whom a host may vouch for: everybody where it is declared, else those who have a job on it; administrators on few hosts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from lavad.core.lang.asks import Ask, Caller, Kill, Query
from lavad.core.lang.token_ask import Token
from lavad.core.rules.vouching import has_jobs, is_admin_host, is_member, why_not_vouched
from tests.support.worlds.bench import Bench

KILL, LOOK = Kill(), Query(command="bjobs")


def _bench(
    submit: tuple[str, ...] = ("all",), admin: tuple[str, ...] = (), listed: tuple[str, ...] = ("h1", "h2", "h3")
) -> Bench:
    bench = Bench()
    params = replace(bench.cluster.conf.params, lava_submit_hosts=submit, lava_admin_hosts=admin)
    bench.configure(params=params, hosts=tuple(HostConfig(name) for name in listed))
    return bench


def _why(bench: Bench, user: str, host: str, ask: Ask = KILL, uid: int = 1000, may_administer: bool = True) -> str:
    return why_not_vouched(bench.cluster, ask, Caller(user=user, uid=uid, host=host, may_administer=may_administer))


def test_a_declared_host_vouches_for_everybody() -> None:
    bench = _bench()
    assert _why(bench, "bob", "h2") == ""
    assert _why(bench, "bob", "h2", Token()) == ""
    assert _why(_bench(submit=("h2",)), "bob", "h2") == ""
    assert _why(_bench(listed=()), "bob", "h2") == ""


@pytest.mark.parametrize(("submit", "listed"), [(("other",), ("h1", "h2", "h3")), (("all",), ("other",)), ((), ("h1",))])
@pytest.mark.parametrize("ask", [KILL, LOOK])
def test_another_host_vouches_for_those_who_have_a_job_on_it(submit: tuple[str, ...], listed: tuple[str, ...], ask: Ask) -> None:
    bench = _bench()
    key = bench.placed(user="u1")
    (host,) = bench.running()[key]
    other = "h3" if host != "h3" else "h2"
    params = replace(bench.cluster.conf.params, lava_submit_hosts=submit)
    bench.configure(params=params, hosts=tuple(HostConfig(name) for name in listed))
    assert _why(bench, "u1", host, ask) == ""
    # a token would live on after the job
    assert _why(bench, "u1", host, Token()) == f"{host}: Host is not a submission host"
    assert _why(bench, "u2", host, ask) == f"{host}: Host is not a submission host"
    assert _why(bench, "u1", other, ask) == f"{other}: Host is not a submission host"
    bench.ended(key, host)
    assert _why(bench, "u1", host, ask) == f"{host}: Host is not a submission host"


@pytest.mark.parametrize("ask", [KILL, LOOK, Token()])
def test_a_master_that_is_no_host_of_the_cluster_hears_its_own_users(ask: Ask) -> None:
    bench = _bench()
    assert why_not_vouched(bench.cluster, ask, Caller(user="bob", uid=1000, host="m", local=True)) == ""
    # the page asks there with tokens, which may have fewer rights than their user
    assert why_not_vouched(bench.cluster, ask, Caller(user="bob", uid=1000, host="m", local=True, may_administer=False)) == ""
    elsewhere = _bench(submit=("login",))
    caller = Caller(user="bob", uid=1000, host="m", local=True)
    assert why_not_vouched(elsewhere.cluster, ask, caller) == "m: Host is not a submission host"


@pytest.mark.parametrize("ask", [KILL, LOOK, Token()])
def test_administrators_are_heard_where_they_have_their_rights(ask: Ask) -> None:
    bench = _bench(submit=("login",))
    bench.configure(admins=("ann",))
    for user, uid in (("ann", 1000), ("root", 0)):
        assert _why(bench, user, "m", ask, uid) == ""
        assert _why(bench, user, "m", ask, uid, may_administer=False) != "" or (uid == 0 and isinstance(ask, Query))
    assert _why(bench, "bob", "m", ask) == "m: Host is not a submission host"


@pytest.mark.parametrize(("user", "uid"), [("root", 0), ("root", 1000), ("toor", 0)])
def test_root_can_only_look_where_administrators_have_no_rights(user: str, uid: int) -> None:
    bench = _bench()
    assert _why(bench, user, "h2", KILL, uid, False) == "h2: root is not heard from this host (LAVA_ADMIN_HOSTS)"
    assert _why(bench, user, "h2", LOOK, uid, False) == ""
    assert _why(bench, user, "h2", KILL, uid, True) == ""


def test_administrators_act_from_the_masters_host_and_those_named() -> None:
    conf = _bench(admin=("h2", "h3.example.org")).cluster.conf
    assert is_admin_host(conf, "h1", "h1")
    assert is_admin_host(conf, "m", "h2")
    assert is_admin_host(conf, "m", "h3")
    assert is_admin_host(conf, "m", "h2.example.org")
    assert not is_admin_host(conf, "m", "h3.example.com")
    assert not is_admin_host(conf, "m", "h1")
    assert is_admin_host(_bench(admin=("all",)).cluster.conf, "m", "h1")
    assert not is_admin_host(_bench().cluster.conf, "m", "h1")


def test_a_host_belongs_to_the_cluster_while_its_files_say_so() -> None:
    bench = _bench(listed=("h1",))
    assert is_member(bench.cluster, "h1")
    assert not is_member(bench.cluster, "h2")
    bench.configure(params=replace(bench.cluster.conf.params, open_hosts=True))
    assert is_member(bench.cluster, "h2")
    assert is_member(_bench(listed=()).cluster, "h9")


def test_a_host_has_jobs_until_their_parts_are_over() -> None:
    bench = _bench()
    assert not has_jobs(bench.cluster, "h1")
    assert not has_jobs(bench.cluster, "h9")
    key = bench.placed()
    (host,) = bench.running()[key]
    assert has_jobs(bench.cluster, host)
    bench.ended(key, host)
    assert not has_jobs(bench.cluster, host)
