"""Answer a question from pages of documentation: python examples/rag/ask.py "What is a load slot?" [PAGE…]

1. index     each paragraph of the pages has an embedding              /v1/embeddings
2. retrieve  the paragraphs whose embeddings are closest to the question's
3. rerank    their sentences, by their relevance to the question       /v1/rerank
4. answer    from the best sentences, which are printed as sources     /v1/chat/completions

It needs the packages openai and numpy, and the server of `make serve-rag`. SERVER names another address.
"""

import os
import re
import sys
from pathlib import Path

import numpy as np
from openai import OpenAI

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    DOCS / "serve" / name for name in ("deadlines.md", "cache.md", "sequences.md", "streams.md")
]
EMBEDDING, CHAT = "minilm", "smollm2"
PARAGRAPHS, SENTENCES = 5, 3  # that are kept

client = OpenAI(base_url=os.environ.get("SERVER", "http://localhost:8000") + "/v1", api_key="none")


def paragraphs(page: Path) -> list[tuple[str, str]]:
    """Return (name of the page, text) of each paragraph and each entry of a list that is prose."""
    blocks = re.split(
        r"\n\s*\n|\n- ", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    )
    texts = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", " ".join(block.split())) for block in blocks]
    return [(page.name, text) for text in texts if len(text) > 80 and text[0] not in "|#<"]


def embeddings(texts: list[str]) -> np.ndarray:
    """Return an embedding of length 1 for each text, [texts, 384]."""
    found = client.embeddings.create(model=EMBEDDING, input=texts)
    return np.array([each.embedding for each in found.data])


def rerank(question: str, texts: list[str], most: int) -> list[tuple[int, float]]:
    """Return number and score of the most relevant texts, best first."""
    body = {"model": EMBEDDING, "query": question, "documents": texts, "top_n": most}
    found = client.post("/rerank", body=body, cast_to=object)
    return [(each["index"], each["relevance_score"]) for each in found["results"]]


def main(question: str, pages: list[Path]) -> None:
    known = [each for page in pages for each in paragraphs(page)]
    scores = embeddings([text for _, text in known]) @ embeddings([question])[0]
    nearest = [known[at] for at in np.argsort(-scores)[:PARAGRAPHS]]
    sentences = [
        (page, each) for page, text in nearest for each in re.split(r"(?<=\.) (?=[A-Z])", text)
    ]
    best = rerank(question, [text for _, text in sentences], SENTENCES)
    facts = "\n".join(f"- {sentences[at][1]}" for at, _ in best)
    prompt = f"{facts}\n\nUse only these facts. Answer in one sentence: {question}"
    answer = client.chat.completions.create(
        model=CHAT,
        messages=[{"role": "user", "content": prompt}],
        max_completion_tokens=60,
        temperature=0,
    )
    print(answer.choices[0].message.content.strip())
    print(f"\nSources, of {len(known)} paragraphs:")
    for at, score in best:
        page, text = sentences[at]
        print(f"  {score:.2f}  {page}: {text}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} QUESTION [PAGE…]")
    main(sys.argv[1], [Path(each) for each in sys.argv[2:]] or PAGES)
