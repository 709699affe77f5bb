"""What goes wrong, as exceptions that carry the code of the closed list and where the mistake is."""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional, Sequence


class ErrorDetail(NamedTuple):
    """One mistake: a JSON pointer into what was sent, and what is wrong there."""

    pointer: str
    detail: str


class TensorMillError(Exception):
    """Base of all errors of this package.

    ``code`` is a name of the closed list that ``/docs`` of a server shows, such as ``invalid_tensor``.

    >>> raise TensorMillError("not_found", "no such file: net.onnx")
    Traceback (most recent call last):
    ...
    tensormill._errors.TensorMillError: not_found: no such file: net.onnx
    """

    def __init__(self, code: str, detail: str, errors: Sequence[ErrorDetail] = ()) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)

    @property
    def pointer(self) -> Optional[str]:
        """The JSON pointer of the first mistake, if the error names one."""
        return self.errors[0].pointer if self.errors else None


class ProgramError(TensorMillError):
    """The ``tensormill`` program refused, or ended abnormally; ``exit_code`` is its own."""

    def __init__(self, code: str, detail: str, errors: Sequence[ErrorDetail] = (), exit_code: int = 5) -> None:
        super().__init__(code, detail, errors)
        self.exit_code = exit_code


class ExecutorError(TensorMillError):
    """The executor in this process refused; ``number`` is the C interface's code (``TM_ERR_...``)."""

    def __init__(self, code: str, detail: str, number: int) -> None:
        super().__init__(code, detail)
        self.number = number


class ServerError(TensorMillError):
    """A server's answer that is no success: its problem document.

    ``status`` is the HTTP status, ``request_id`` what the server's log calls the request, ``retry_after`` the seconds that
    it asks to wait, ``problem`` the whole document.
    """

    def __init__(self, code: str, detail: str, errors: Sequence[ErrorDetail] = (), *, status: int = 0,
                 request_id: str = "", retry_after: Optional[float] = None,
                 problem: Optional[Mapping[str, Any]] = None) -> None:
        super().__init__(code, detail, errors)
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.problem: Mapping[str, Any] = problem or {}


class JobError(TensorMillError):
    """A job failed or was cancelled; ``job`` is its document."""

    def __init__(self, code: str, detail: str, errors: Sequence[ErrorDetail], job: Mapping[str, Any]) -> None:
        super().__init__(code, detail, errors)
        self.job = job


def details_of(value: Any) -> Sequence[ErrorDetail]:
    """The ``errors`` member of a problem document, whatever a stranger has put there."""
    if not isinstance(value, list):
        return ()
    return tuple(ErrorDetail(str(one.get("pointer", "")), str(one.get("detail", "")))
                 for one in value if isinstance(one, dict))
