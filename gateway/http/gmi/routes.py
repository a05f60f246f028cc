"""All controllers of the family."""

from gateway.http.gmi.queue import AccountQueue, KeyQueue, ShortQueue
from gateway.http.gmi.sign_in import SignInController
from gateway.http.gmi.uploads import AccountUploads, KeyUploads, PutController, ShortUploads

GMI_ROUTES = (
    KeyQueue,
    ShortQueue,
    AccountQueue,
    KeyUploads,
    ShortUploads,
    AccountUploads,
    PutController,
    SignInController,
)
