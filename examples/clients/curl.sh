#!/usr/bin/env bash
# A handwritten digit with curl: clients/curl.sh [ADDRESS]
# Prints the class that the server finds best, as score:number:label; the true one is 7.
set -euo pipefail
address=${1:-localhost:8000}
here=$(dirname "${BASH_SOURCE[0]}")

curl --silent --fail "http://$address/v2/health/ready" # nothing, but fails if the server is not ready
curl --silent --fail-with-body "http://$address/v2/models/digits/infer" -d @"$here/digit.json"
echo
