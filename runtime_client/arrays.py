"""Arrays of jobs; a part of `RuntimeClient`."""

from __future__ import annotations

from pydantic_core import to_json

from .answers import as_one, segment
from .models import ArrayView, JobSpec
from .packing import Packer
from .transport import Transport


class ArrayCalls:
    """All methods raise `RuntimeClientError` and its children."""

    _transport: Transport
    _packer: Packer

    def submit_array(self, spec: JobSpec) -> ArrayView:
        """Submit all tasks of `spec.array`, durable when it returns; all of them or none."""
        body = self._packer.pack(spec).model_dump_json().encode()
        return as_one(ArrayView, self._transport.call("POST", "/v1/arrays", body=body, is_repeatable=True))

    def array(self, array_id: str) -> ArrayView:
        return as_one(ArrayView, self._transport.call("GET", f"/v1/arrays/{segment(array_id)}"))

    def cancel_array(self, array_id: str, *, reason: str = "") -> ArrayView:
        """Ask all tasks to end that have not. Raises Conflict when all have."""
        path = f"/v1/arrays/{segment(array_id)}/cancel"
        return as_one(ArrayView, self._transport.call("POST", path, body=to_json({"reason": reason})))
