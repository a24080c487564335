"""Times a flash card and says what is inside it: probes of simulated cards, inference, the simulator, twins.

    >>> import nandscope
    >>> report = nandscope.probe("sim:toshiba-emmc")
    >>> report.finding("erase_block").shown
    '4 MiB'

Sizes are in bytes, times in ns. What computes releases the interpreter's lock, so that threads run side by side.
"""

from ._nandscope import Card, Finding, Logs, Report, Trace, Twin, __version__, infer, probe

__all__ = ["Card", "Finding", "Logs", "Report", "Trace", "Twin", "__version__", "arrow", "infer", "probe"]


def arrow(columns):
    """Columns of `Report.samples()` or `Trace.columns()` as a table of pyarrow, on the same memory."""
    import pyarrow

    return pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})
