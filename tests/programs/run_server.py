"""An asyncio server and its clients, in one process: echo in upper case, with a timeout, a cancelled task and an executor."""
import asyncio
import sys


async def serve(reader, writer):
    async for line in reader:
        writer.write(line.upper())
        await writer.drain()
    writer.close()


def blocking(n):
    return n * n


async def client(port, n):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = []
    for i in range(20):
        writer.write(b"client %d line %d\n" % (n, i))
        await writer.drain()
        said.append(await asyncio.wait_for(reader.readline(), 30))
    writer.close()
    await writer.wait_closed()
    return said


async def main(clients):
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        answers = await asyncio.gather(*(client(port, n) for n in range(clients)))
    assert all(line == b"CLIENT %d LINE %d\n" % (n, i) for n, said in enumerate(answers) for i, line in enumerate(said))
    loop = asyncio.get_running_loop()
    squares = await asyncio.gather(*(loop.run_in_executor(None, blocking, n) for n in range(10)))
    forever = asyncio.create_task(asyncio.sleep(1000))
    await asyncio.sleep(0)
    forever.cancel()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "def child(): print(5)\nchild()", stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    print(len(answers), sum(map(len, answers)), sum(squares), out.decode().strip())


asyncio.run(main(int(sys.argv[1])))
