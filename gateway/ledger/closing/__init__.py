"""Closes hours: what `usage_rollup` has of them goes into coarser tables, once nothing can be added to them any more.

Readers take closed hours from the coarser tables (`gateway/db/rollups.py`) and the others from `usage_rollup`;
`rollup_state.closed_through` says where the one ends and the other begins.
"""
