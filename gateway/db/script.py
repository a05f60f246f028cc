"""Running a whole SQL file inside the transaction of an SQLAlchemy connection."""

from sqlalchemy import Connection, text
from sqlalchemy.util import await_only


def run_script(connection: Connection, script: str) -> None:
    """Run every statement of `script`: SQLAlchemy itself prepares what it runs, which allows only one."""
    connection.execute(text("select 1"))  # begins the transaction, which SQLAlchemy puts off until the first statement
    driver = connection.connection.driver_connection
    assert driver is not None
    await_only(driver.execute(script))
