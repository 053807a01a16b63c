"""What Discreet says in German: English template -> German template, for all packages that speak to people."""

from discreet.words.german_answers import ANSWERS
from discreet.words.german_requests import REQUESTS

GERMAN = {**ANSWERS, **REQUESTS}
