"""A usage report as Parquet."""

import io
from typing import Any

from msgspec import UNSET

from gateway.reports.exports.parquet import require_parquet
from gateway.reports.table import COLUMNS, COST_MEASURES, MEASURES, UsageTable


def parquet_of(table: UsageTable) -> bytes:
    """Write the rows of a report, without the total. Raises Unavailable where arro3 is not installed."""
    require_parquet()
    from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
    from arro3.io import write_parquet

    names = [column for dimension in table.group_by for column in COLUMNS[dimension]]
    names += [*MEASURES, *(COST_MEASURES if table.total.cost_nanos is not UNSET else ())]
    columns = {name: [_plain(getattr(row, name)) for row in table.rows] for name in names}
    kinds = {name: _kind(name, values) for name, values in columns.items()}
    types = {"whole": DataType.int64(), "text": DataType.utf8()}
    schema = Schema([Field(name, types[kind], nullable=True) for name, kind in kinds.items()])
    arrays = [Array(values, types[kinds[name]]) for name, values in columns.items()]
    file = io.BytesIO()
    batch = RecordBatch.from_arrays(arrays, schema=schema)
    write_parquet(RecordBatchReader.from_batches(schema, [batch]), file)
    return file.getvalue()


def _plain(value: Any) -> Any:
    if value is None or value is UNSET:
        return None
    return value if isinstance(value, int | str) else value.isoformat()


def _kind(name: str, values: list[Any]) -> str:
    return "whole" if name.endswith(("_nanos", "_us", "_id")) or isinstance(next(iter(values), ""), int) else "text"
