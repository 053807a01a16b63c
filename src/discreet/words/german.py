"""What Discreet says in German: English template -> German template, for all packages that speak to people."""

from discreet.words.german_answers import ANSWERS
from discreet.words.german_files import FILES
from discreet.words.german_problems import PROBLEMS
from discreet.words.german_pxweb import PXWEB
from discreet.words.german_requests import REQUESTS

PARTS = (ANSWERS, PXWEB, REQUESTS, PROBLEMS, FILES)
GERMAN = {template: said for part in PARTS for template, said in part.items()}
