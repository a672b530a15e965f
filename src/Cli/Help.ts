/** What `--help` prints. */
export const help = `mcp-query: an MCP server that lets an AI client read databases and workbooks, and never write.

Usage
  mcp-query SOURCE...            serve over stdio; SOURCE is [id=]LOCATION
  mcp-query --config FILE        serve what a JSON config file names (also env MCP_QUERY_CONFIG)
  mcp-query                      with env DATABASE_URL: serve that one source
  mcp-query check [SOURCE... | --config FILE] [--json]
                                 connect to each source; tell reachability, what the login may do, limits
  mcp-query audit LOGFILE... [--since 1h] [--json] [--html FILE] [--follow]
                                 summarise call logs: counts, latency, failures, slowest statements
  mcp-query demo                 see the main job done on a sample database and a workbook
  mcp-query --help | --version

LOCATION
  a file                         .db .sqlite .sqlite3, .xlsx .xlsm .xltx, .csv .tsv
  a URL                          postgres://USER:PASSWORD@HOST/DATABASE, sqlserver://…, sqlite:PATH, excel:PATH, csv:PATH
  env:NAME                       any of these, read from the environment, so that no secret stands in the arguments

Examples
  mcp-query shop=./shop.db
  mcp-query crm=env:CRM_URL budget=./budget.xlsx

Exit codes: 0 ended as asked, 1 check met a source that it cannot reach, 78 a fault in the configuration, 70 anything
unexpected.`
