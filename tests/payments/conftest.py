"""What all tests of this folder share: sessions that wait while the machine stalls."""

from tests.ledger.patience import patience  # noqa: F401 - an autouse fixture
