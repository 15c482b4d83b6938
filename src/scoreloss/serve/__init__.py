"""A fitted model as a small HTTP service: JSON in and out, a page to try it, one process.

``serve`` is all a caller needs. Requests that come together are computed together, in one thread.
"""

from scoreloss.serve.limits import Limits
from scoreloss.serve.run import serve

__all__ = ["Limits", "serve"]
