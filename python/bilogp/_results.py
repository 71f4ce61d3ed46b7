"""What the functions return: tuples with names, and reports that show themselves in terminals and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class LogpResult(NamedTuple):
    """Log-probabilities, and per row logsumexp(logits / temperature); both float32."""

    logp: Any
    lse: Any


class ForwardResult(NamedTuple):
    """With the row's sum as (bits of m, E), int32 [..., 2], which ``logp_backward`` takes."""

    logp: Any
    lse: Any
    row_state: Any


class GradientResult(NamedTuple):
    """Both passes in one: float32 [...] twice, and the gradient in the logits' dtype."""

    logp: Any
    lse: Any
    grad_logits: Any


class Shard(NamedTuple):
    """What the columns [begin, end) of the vocabulary contribute to each row."""

    begin: int
    end: int
    nodes: Any  # int32 [..., node_count(begin, end, full_vocab), 2]
    target_logit: Any  # float32 [...], -inf where the target lies in another shard


class TargetErrors(NamedTuple):
    """Bad target ids seen with validation off: how many, the lowest row that had one, and its id."""

    count: int  # type: ignore[assignment]
    first_row: int
    first_id: int


class KernelInfo(NamedTuple):
    """A kernel of this process. ``origin`` is compiled, store or loaded (it was there already)."""

    kernel: str
    target: str
    compiler: str
    origin: str
    seconds: float
    image_bytes: int


class BackEnd(NamedTuple):
    """A kind of device. ``reason`` says why it is not available and how to mend that."""

    name: str
    available: bool
    target: str | None
    reason: str


class Table(NamedTuple):
    """Rows of text under headings; a report's face."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __rich__(self) -> Any:
        from rich.table import Table as RichTable

        table = RichTable(*self.columns, title=self.title, title_justify="left")
        for row in self.rows:
            table.add_row(*row)
        return table

    def html(self) -> str:
        from html import escape

        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        return f"<table><caption>{escape(self.title)}</caption><tr>{head}</tr>{body}</table>"

    def text(self) -> str:
        """Plain columns, for terminals without rich and for files."""
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        aligned = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
        return "\n".join([self.title, *aligned])


def kernel_table(title: str, kernels: tuple[KernelInfo, ...]) -> Table:
    columns = ("kernel", "target", "compiler", "from", "ms", "bytes")
    rows = ((k.kernel, k.target, k.compiler, k.origin, f"{1e3 * k.seconds:.1f}", f"{k.image_bytes:,}") for k in kernels)
    return Table(title, columns, tuple(rows))


class Report:
    """Shows itself: ``print`` plainly, rich as a table, a notebook as HTML."""

    def tables(self) -> Iterator[Table]:
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        for table in self.tables():
            yield table.__rich__()

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())


class WarmupReport(Report):
    """The kernels that ``warmup`` made ready."""

    def __init__(self, kernels: tuple[KernelInfo, ...]) -> None:
        self.kernels = kernels

    def __repr__(self) -> str:
        return f"WarmupReport({len(self.kernels)} kernels)"

    def tables(self) -> Iterator[Table]:
        yield kernel_table(f"{len(self.kernels)} kernels ready", self.kernels)


class RuntimeInfo(Report):
    """What this process runs with."""

    def __init__(
        self,
        *,
        version: str,
        contract_id: str,
        num_threads: int,
        back_ends: tuple[BackEnd, ...],
        kernels: tuple[KernelInfo, ...],
    ) -> None:
        self.version = version
        self.contract_id = contract_id
        self.num_threads = num_threads
        self.back_ends = back_ends
        self.kernels = kernels

    def __repr__(self) -> str:
        return f"RuntimeInfo(version={self.version!r}, contract_id={self.contract_id!r}, kernels={len(self.kernels)})"

    def tables(self) -> Iterator[Table]:
        rows = tuple((b.name, b.target or "-", "yes" if b.available else b.reason) for b in self.back_ends)
        title = f"bilogp {self.version}, contract {self.contract_id}, {self.num_threads} CPU threads"
        yield Table(title, ("back end", "target", "available"), rows)
        yield kernel_table(f"{len(self.kernels)} kernels loaded", self.kernels)
