"""The barest relay that aiohttp makes, to compare with: `server_relay PROVIDER_URL uvloop|asyncio`.

It reads no body but to pass it on. What has a length is passed on whole, the rest as it comes.
"""

import asyncio
import sys

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

NOT_PASSED_ON = {"host", "content-length", "connection", "transfer-encoding", "keep-alive"}
PROVIDER = web.AppKey("provider", str)
SESSION = web.AppKey("session", ClientSession)


async def relay(request: web.Request) -> web.StreamResponse:
    """One request, there and back."""
    headers = {name: value for name, value in request.headers.items() if name.lower() not in NOT_PASSED_ON}
    url = request.app[PROVIDER] + request.raw_path
    body = await request.read()
    async with request.app[SESSION].request(request.method, url, data=body, headers=headers) as upstream:
        kept = {name: value for name, value in upstream.headers.items() if name.lower() not in NOT_PASSED_ON}
        if upstream.content_length is not None:
            return web.Response(status=upstream.status, headers=kept, body=await upstream.read())
        response = web.StreamResponse(status=upstream.status, headers=kept)
        await response.prepare(request)
        async for chunk in upstream.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response


async def serve(provider: str) -> None:
    app = web.Application()
    app[PROVIDER] = provider
    app.router.add_route("*", "/{path:.*}", relay)
    timeout = ClientTimeout(total=None)
    async with ClientSession(
        connector=TCPConnector(limit=0), timeout=timeout, auto_decompress=False
    ) as session:
        app[SESSION] = session
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=2048).start()
        sys.stderr.write(f"listening on http://127.0.0.1:{runner.addresses[0][1]}\n")
        sys.stderr.flush()
        await asyncio.Event().wait()


def main() -> None:
    provider, loop = sys.argv[1:]
    (uvloop.run if loop == "uvloop" else asyncio.run)(serve(provider))


if __name__ == "__main__":
    main()
