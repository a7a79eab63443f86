"""Arrays whose references compiled loops do not count.

Numba counts references to arrays, by an atomic operation each time that a function takes one, a tuple gives one or a
view is made. In loops over a few states this would take most of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba.core import types
from numba.extending import intrinsic


def _uncounted(typingctx: Any, arrays: Any) -> Any:
    """Return the same arrays, a named tuple of them or a single one, without an owner.

    Only for what the caller from Python holds until the compiled function returns: nothing else keeps it in memory.
    """
    del typingctx

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def without(kind: Any, value: Any) -> Any:
            array = context.make_array(kind)(context, builder, value)
            array.meminfo = array.meminfo.type(None)
            array.parent = array.parent.type(None)
            return array._getvalue()  # noqa: SLF001

        kind, value = signature.args[0], args[0]
        if isinstance(kind, types.Array):
            return without(kind, value)
        for n, member in enumerate(kind):
            value = builder.insert_value(value, without(member, builder.extract_value(value, n)), n)
        return value

    return arrays(arrays), codegen


# numba calls it with the context, compiled code without
uncounted = cast("Callable[[Any], Any]", intrinsic(_uncounted))
