"""Models and their prices: the list, the editor with its drafts, publishing, history, backtests, price lists."""

from gateway.admin.pages.models.backtests import begin_backtest, cancel_backtest, show_backtest, show_progress
from gateway.admin.pages.models.editor import show_editor, show_outcome
from gateway.admin.pages.models.listing import list_models
from gateway.admin.pages.models.lists import LISTS
from gateway.admin.pages.models.publish import ask_publish, publish
from gateway.admin.pages.models.versions import ask_cancel, ask_reinstate, cancel, reinstate

PAGES = (
    list_models,
    show_editor,
    show_outcome,
    ask_publish,
    publish,
    ask_cancel,
    cancel,
    ask_reinstate,
    reinstate,
    begin_backtest,
    show_backtest,
    show_progress,
    cancel_backtest,
    *LISTS,
)
