from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.cpu_limit.cgroup_limit import CgroupLimit, find_cgroup_limit
from mmedge_ros.monitoring import MonitoringError


def mounted(folder: Path, *groups: str) -> tuple[Path, Path]:
    """A mount that looks like cgroup v2, with our own group below, and /proc/self/cgroup."""
    mount, own = folder / 'cgroup', folder / 'own'
    for group in ('user/me', *groups):
        (mount / group).mkdir(parents=True)
    (mount / 'cgroup.controllers').write_text('cpu memory')
    own.write_text('1:name=systemd:/\n0::/user/me\n')
    return mount, own


def made(folder: Path) -> Path:
    """What the kernel fills a new group with."""
    (folder / 'cpu.max').write_text('max 100000')
    (folder / 'cgroup.procs').write_text('')
    return folder


def test_a_process_is_moved_into_a_group_of_its_own(tmp_path: Path) -> None:
    mount, own = mounted(tmp_path, 'user/me/mmedge_limit_77')
    group = made(mount / 'user/me/mmedge_limit_77')
    limit = find_cgroup_limit(77, mount, own)
    assert limit is not None
    assert (group / 'cgroup.procs').read_text() == '77'
    limit.set_share(0.5, 4)
    assert (group / 'cpu.max').read_text() == '20000 10000'
    limit.set_share(1.0, 4)
    assert (group / 'cpu.max').read_text() == 'max 10000'
    limit.set_share(0.01, 1)
    assert (group / 'cpu.max').read_text() == '1000 10000'


def test_in_the_end_everybody_is_moved_out_and_unlimited(tmp_path: Path) -> None:
    mount, _ = mounted(tmp_path, 'user/me/mmedge_limit_77')
    group = made(mount / 'user/me/mmedge_limit_77')
    (mount / 'user/me/cgroup.procs').write_text('')
    limit = CgroupLimit(mount / 'user/me', 'mmedge_limit_77')
    limit.add(77)
    limit.set_share(0.3, 2)
    limit.close()
    assert (group / 'cpu.max').read_text() == 'max 10000'
    assert (mount / 'user/me/cgroup.procs').read_text() == '77'


def test_without_the_processor_controller_there_is_no_group(tmp_path: Path) -> None:
    mount, own = mounted(tmp_path)
    assert find_cgroup_limit(77, mount, own) is None
    assert sorted(path.name for path in mount.rglob('*')) == ['cgroup.controllers', 'me', 'user']


def test_without_version_two_there_is_no_group(tmp_path: Path) -> None:
    mount, own = mounted(tmp_path)
    (mount / 'cgroup.controllers').unlink()
    assert find_cgroup_limit(77, mount, own) is None
    assert find_cgroup_limit(77, mount, tmp_path / 'none') is None


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(MonitoringError, match='mmedge_limit: Not a directory'):
        CgroupLimit(tmp_path / 'file', 'mmedge_limit')
