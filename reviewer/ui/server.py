"""The shell that serves it all: one Gradio page, and under ``/review`` the routes, the media and the front end."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import gradio as gr
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from reviewer.errors import ReviewerError
from reviewer.jobs import Worker, queue_examples
from reviewer.library import Library, open_library
from reviewer.settings import Settings
from reviewer.ui import library_routes, review_routes
from reviewer.ui.http import tell_errors

TITLE = "Trajectory Reviewer"
PREFIX = "/review"
PAGE_CSS = """
body, .gradio-container, .gradio-container > main { margin: 0; padding: 0 !important; max-width: none !important; }
footer { display: none !important; }
"""
_PACKAGE = Path(__file__).parent.parent


class PortTaken(ReviewerError):
    """Another program listens where the server was to."""


class _Modules(StaticFiles):
    """Static files a browser asks for anew each time; unchanged ones are answered without a body.

    The modules import each other by plain names, so a version in the URL would reach only the first of them.
    """

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def mounted(api: FastAPI) -> Mount:
    """The API as a route of Gradio's app, also when a reverse proxy strips the prefix that Gradio was told of."""

    async def under_prefix(scope: Scope, receive: Receive, send: Send) -> None:
        # The stripped prefix stands in root_path but not in path, where the routes would look for it.
        is_stripped = not scope["path"].startswith(scope["root_path"])
        await api({**scope, "root_path": PREFIX} if is_stripped else scope, receive, send)

    return Mount(PREFIX, under_prefix)


def static_folder() -> Path:
    """The front end: inside an installed package, else beside it in the source tree."""
    return next(folder for folder in (_PACKAGE / "static", _PACKAGE.parent / "static") if folder.is_dir())


def build_api(library: Library, wake: Callable[[], None]) -> FastAPI:
    """Everything under ``/review``. ``wake`` is called when a job was queued."""
    api = FastAPI(title=TITLE, docs_url=None, redoc_url=None, openapi_url=None)
    tell_errors(api)
    api.include_router(review_routes.router(library.database))
    api.include_router(library_routes.router(library, wake))
    api.mount("/static", _Modules(directory=static_folder()))
    return api


def build_page() -> gr.Blocks:
    """The page: a constant element which the front end fills. No text of a trajectory passes through Gradio."""
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True) as page:
        gr.HTML(html_template='<div class="reviewer-root"></div>', js_on_load=_on_load(), apply_default_css=False)
    return page


def _on_load() -> str:
    module, stylesheet = (json.dumps(f"review/static/{name}?v={_version()}") for name in ("main.js", "app.css"))
    return f"""
const place = (path) => new URL(path, document.baseURI).href;
const root = element.querySelector(".reviewer-root");
import(place({module})).then(
  ({{ mount }}) => mount(root, {{ stylesheet: place({stylesheet}) }}),
  (error) => {{ root.textContent = `The page could not be loaded: ${{error.message}}`; }},
);
"""


def _version() -> str:
    digest = hashlib.sha256()
    for path in sorted(static_folder().rglob("*")):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def launch(
    settings: Settings, host: str | None = None, port: int | None = None, *, examples: bool = True
) -> tuple[gr.Blocks, str, Worker]:
    """Start the server and its worker; returns the page, its address and the worker once the page answers.

    Without ``host`` and ``port`` Gradio's own settings hold. The first start of an empty library loads the examples in
    the background. Raises PortTaken, and DatabaseError when the library can't be opened.
    """
    library = open_library(settings)
    if examples:
        queue_examples(library)
    worker = Worker(library)
    page = build_page()
    api = build_api(library, worker.wake)
    try:
        _, address, _ = page.launch(
            server_name=host,
            server_port=port,
            root_path=settings.root_path or None,
            app_kwargs={"routes": [mounted(api)]},
            css=PAGE_CSS,
            ssr_mode=False,
            run_history=False,
            footer_links=[],
            show_error=True,
            quiet=True,
            prevent_thread_lock=True,
        )
    except OSError as error:
        if "empty port" not in str(error):
            raise
        raise PortTaken(
            f"Port {port} on {host} can't be used; stop the program that uses it or choose another --port."
        ) from error
    worker.start()
    return page, address, worker


def serve(settings: Settings, host: str, port: int, *, examples: bool = True) -> None:
    """Serve until interrupted, saying where once the page answers."""
    page, _, worker = launch(settings, host, port, examples=examples)
    sys.stdout.write(f"{TITLE}: http://{host}:{port}\n")
    sys.stdout.flush()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        worker.stop()
        page.close(verbose=False)
