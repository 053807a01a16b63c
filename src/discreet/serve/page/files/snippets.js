// The question of a table as code for a shell, Python and R. Everything in it works as it is pasted.

const LONGEST = 4000; // characters of an address that every program takes
const VARIABLE = "TABLE_BUILDER_TOKEN"; // of the environment: a token itself is in no snippet

/** The same table from three languages: in one line where the question fits into an address. */
export function snippets(query, address, withToken) {
  const body = JSON.stringify(query);
  const whole = `${address}?format=csv&query=${encodeURIComponent(body).replace(/'/g, "%27")}`;
  return whole.length <= LONGEST ? short(whole, withToken) : long(`${address}?format=csv`, body, withToken);
}

function short(address, withToken) {
  return {
    curl: `curl -o table.csv ${shellToken(withToken)}'${address}'`,
    Python: `${withToken ? "import os\n" : ""}import pandas as pd

table = pd.read_csv(
    "${address}",
    dtype=str,${withToken ? `\n    storage_options={"Authorization": "Bearer " + os.environ["${VARIABLE}"]},` : ""}
)
table["value"] = pd.to_numeric(table["value"]).astype("Int64")`,
    R: `${
      withToken
        ? `source <- url("${address}",\n  headers = c(Authorization = paste("Bearer", Sys.getenv("${VARIABLE}"))))\n`
        : `source <- "${address}"\n`
    }table <- read.csv(source, colClasses = "character")
table$value <- as.integer(table$value)`,
  };
}

function long(address, body, withToken) {
  const text = JSON.stringify(body); // a string literal that Python and R read alike
  const pythonToken = withToken ? `, "Authorization": "Bearer " + os.environ["${VARIABLE}"]` : "";
  const rToken = withToken ? `\n  req_auth_bearer_token(Sys.getenv("${VARIABLE}")) |>` : "";
  return {
    curl: `curl -o table.csv -H 'Content-Type: application/json' ${shellToken(withToken)}'${address}' \\
  --data '${body.replace(/'/g, "'\\''")}'`,
    Python: `${withToken ? "import os\n" : ""}from urllib.request import Request, urlopen

import pandas as pd

query = ${text}
headers = {"Content-Type": "application/json"${pythonToken}}
answer = urlopen(Request("${address}", query.encode(), headers))
table = pd.read_csv(answer, dtype=str)
table["value"] = pd.to_numeric(table["value"]).astype("Int64")`,
    R: `library(httr2)

answer <- request("${address}") |>${rToken}
  req_body_raw(${text}, "application/json") |>
  req_perform()
table <- read.csv(text = resp_body_string(answer), colClasses = "character")
table$value <- as.integer(table$value)`,
  };
}

const shellToken = (withToken) => (withToken ? `-H "Authorization: Bearer $${VARIABLE}" ` : "");
