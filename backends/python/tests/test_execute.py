"""Requests through a model in a child: what goes in comes out."""


async def test_a_model_answers(serve):
    model = await serve(
        """
        def execute(self, requests):
            return [pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", pb_utils.get_input_tensor_by_name(r, "x").as_numpy() * 2)]) for r in requests]
        """
    )

    assert await model.y(1, 2, 3) == [2, 4, 6]
