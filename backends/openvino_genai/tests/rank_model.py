"""Makes a small model that ranks: BERT with random weights, and its tokenizer for pairs of texts."""

import warnings

import openvino as ov

WORDS = [
    *("the", "a", "cat", "dog", "sleeps", "runs", "on", "sofa", "stocks", "fell", "by", "percent"),
    *("who", "is", "sleeping", "where", "?", "."),
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CONTEXT = 32


def write_rank_model(folder):
    """Write a folder as `optimum-cli export openvino --task text-classification` does.

    Return a function (query, documents) → scores by transformers.
    """
    import torch
    import transformers
    from openvino_tokenizers import convert_tokenizer
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    torch.manual_seed(3)
    names = {text: at for at, text in enumerate(SPECIAL + WORDS)}
    config = transformers.BertConfig(
        vocab_size=len(names),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=CONTEXT,
        num_labels=1,
        initializer_range=0.5,
    )
    model = transformers.BertForSequenceClassification(config).eval()
    inner = Tokenizer(models.WordPiece(names, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = {f"{each[1:-1].lower()}_token": each for each in SPECIAL}
    tokenizer = transformers.BertTokenizerFast(tokenizer_object=inner, **special)

    example = dict(tokenizer(["cat", "dog"], ["a cat", "a dog"], return_tensors="pt"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the trace
        converted = ov.convert_model(model, example_input=example)
    for each in converted.inputs:
        each.get_node().set_partial_shape(ov.PartialShape([-1, -1]))
    converted.outputs[0].get_tensor().set_names({"logits"})
    converted.validate_nodes_and_infer_types()
    ov.save_model(converted, folder / "openvino_model.xml", compress_to_fp16=False)
    pair = convert_tokenizer(tokenizer, with_detokenizer=True, number_of_inputs=2)
    for made, name in zip(pair, ("tokenizer", "detokenizer"), strict=True):
        ov.save_model(made, folder / f"openvino_{name}.xml")
    config.architectures = ["BertForSequenceClassification"]
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)

    def scores(query, documents):
        given = tokenizer([query] * len(documents), documents, padding=True, return_tensors="pt")
        with torch.no_grad():
            return model(**given).logits[:, 0].sigmoid().numpy()

    return scores
