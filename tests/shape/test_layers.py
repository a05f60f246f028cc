"""Imports go downward only."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_layer_imports_a_higher_one() -> None:
    """The contracts stand in pyproject.toml."""
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_workers_side_of_the_queue_stays_light() -> None:
    """Loading it brings neither a web framework nor a database with it."""
    script = (
        "import sys, gateway.queues.redis_worker\n"
        "assert not {'litestar', 'sqlalchemy', 'asyncpg', 'alembic'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_settler_needs_no_web_framework() -> None:
    """It tells of requests in the shapes of all families, and serves none of them."""
    script = "import sys, gateway.commands.settler\nassert not {'litestar', 'uvicorn', 'alembic'} & set(sys.modules)\n"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_contract_loads_nothing_else_of_the_gateway() -> None:
    """Workers of any engine stay light: neither the gateway's packages nor its web framework come along."""
    script = (
        "import sys, gateway.contract.request, gateway.contract.events, gateway.contract.pools\n"
        "loaded = {name for name in sys.modules if name.startswith('gateway.')}\n"
        "assert all(name.startswith('gateway.contract') for name in loaded), loaded\n"
        "assert not {'litestar', 'sqlalchemy', 'asyncpg'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
