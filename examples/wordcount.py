"""wordcount.py -- which words do some texts use most, and where?

    python3 wordcount.py [--top N] [--json] [FILE or DIRECTORY]...

Without a file it reads the standard library of the Python that runs it. It is
an ordinary program that knows nothing of dyntrace; it serves to show what a
recording holds, and so does a little of everything:

    threads             read the files
    a process pool      splits the texts into words (generators) and counts them
    asyncio             a server answers questions about the index as JSON lines;
                        clients ask it, all at once
"""
import argparse
import asyncio
import json
import multiprocessing
import os
import re
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WORD = re.compile(r"[A-Za-z][A-Za-z_]{2,}")


def find_files(names):
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(path.glob("*.py"))
        else:
            yield path


def read_file(path):
    return str(path), path.read_text(encoding="utf-8", errors="replace")


def words(text):
    """Yield every word, lower case."""
    for line in text.splitlines():
        for match in WORD.finditer(line):
            yield match.group().lower()


def count_words(item):
    """In a pool process: one text to (name, {word: count})."""
    name, text = item
    return name, Counter(words(text))


class Index:
    """What the server knows: every word with its files."""

    def __init__(self):
        self.total = Counter()
        self.places = defaultdict(Counter)

    def add(self, name, counts):
        self.total.update(counts)
        for word, count in counts.items():
            self.places[word][name] = count

    def top(self, number):
        return [{"word": word, "count": count, "files": len(self.places[word])}
                for word, count in self.total.most_common(number)]

    def where(self, word):
        return {"word": word, "count": self.total[word],
                "most": [Path(name).name for name, _ in self.places[word].most_common(3)]}

    def answer(self, question):
        if "top" in question:
            return self.top(question["top"])
        return self.where(question["word"])


async def serve(index, reader, writer):
    async for line in reader:
        writer.write(json.dumps(index.answer(json.loads(line))).encode() + b"\n")
        await writer.drain()
    writer.close()


async def ask(address, question):
    reader, writer = await asyncio.open_connection(*address)
    writer.write(json.dumps(question).encode() + b"\n")
    answer = json.loads(await reader.readline())
    writer.close()
    await writer.wait_closed()
    return answer


async def questions(index, top):
    """Ask the server for the top words, then for each of them at once."""
    server = await asyncio.start_server(lambda r, w: serve(index, r, w), "127.0.0.1", 0, limit=1 << 20)
    async with server:
        address = server.sockets[0].getsockname()
        ranking = await ask(address, {"top": top})
        return await asyncio.gather(*(ask(address, {"word": row["word"]}) for row in ranking))


def build_index(paths, processes):
    with ThreadPoolExecutor(max_workers=4, thread_name_prefix="reader") as readers:
        texts = list(readers.map(read_file, paths))
    index = Index()
    with multiprocessing.Pool(processes) as pool:
        for name, counts in pool.imap(count_words, texts, chunksize=8):
            index.add(name, counts)
        pool.close()
        pool.join()
    return index, len(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", default=[os.path.dirname(os.__file__)], metavar="FILE")
    parser.add_argument("--top", type=int, default=5, metavar="N")
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args()

    index, files = build_index(list(find_files(args.names)), args.processes)
    answers = asyncio.run(questions(index, args.top))
    if args.json:
        print(json.dumps(answers, indent=2))
        return
    print(f"{files} files, {sum(index.total.values())} words, {len(index.total)} different")
    for row in answers:
        print(f"{row['count']:8} {row['word']:12} most in {', '.join(row['most'])}")


if __name__ == "__main__":
    main()
