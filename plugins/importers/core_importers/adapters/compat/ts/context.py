"""What a handler learns about its model and its requests."""


class RequestProcessor:
    """Headers of one request and of its answer. Headers of answers are not sent."""

    def __init__(self, request_header):
        self._request = request_header
        self._response = {}
        self._status = (200, None)

    def get_request_property(self, key):
        return self._request.get(key)

    def get_request_properties(self):
        return self._request

    def report_status(self, code, reason_phrase=None):
        self._status = (code, reason_phrase)

    def get_response_status_code(self):
        return self._status[0]

    def get_response_status_phrase(self):
        return self._status[1]

    def add_response_property(self, key, value):
        self._response[key] = value

    def get_response_header(self, key):
        return self._response.get(key)

    def get_response_headers(self):
        return self._response


class Context:
    def __init__(
        self,
        model_name,
        model_dir,
        manifest,
        batch_size,
        gpu,
        mms_version,
        limit_max_image_pixels=True,
        *,
        metrics=None,
        model_yaml_config=None,
    ):
        self.model_name = model_name
        self.manifest = manifest
        self.metrics = metrics
        self.model_yaml_config = model_yaml_config
        self.request_ids = None
        self.request_processor = None
        self.stopping_criteria = None
        self.system_properties = {
            "model_dir": model_dir,
            "gpu_id": gpu,
            "batch_size": batch_size,
            "server_name": "MMS",
            "server_version": mms_version,
            "limit_max_image_pixels": limit_max_image_pixels,
        }

    def get_request_id(self, idx=0):
        return self.request_ids.get(idx) if self.request_ids else None

    def get_request_header(self, idx, key):
        return self.request_processor[idx].get_request_property(key)

    def get_all_request_header(self, idx):
        return self.request_processor[idx].get_request_properties()

    def get_sequence_id(self, idx):
        return self.get_request_header(idx, "ts_request_sequence_id")

    def set_response_content_type(self, idx, value):
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx):
        return self.get_response_headers(idx).get("content-type")

    def set_response_header(self, idx, key, value):
        self.request_processor[idx].add_response_property(key, value)

    def get_response_headers(self, idx):
        return self.request_processor[idx].get_response_headers()

    def set_response_status(self, code=200, phrase="", idx=0):
        self.request_processor[idx].report_status(code, phrase)

    def set_all_response_status(self, code=200, phrase=""):
        for each in self.request_processor:
            each.report_status(code, phrase)

    def get_response_status(self, idx):
        each = self.request_processor[idx]
        return each.get_response_status_code(), each.get_response_status_phrase()
