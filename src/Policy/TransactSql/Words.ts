/** The word lists of the Transact-SQL rules, upper case; function names lower case. */

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/))

/** Reserved words that begin a statement which writes data, objects or rights. */
export const writingWords = words(`
  ALTER BACKUP BULK CREATE DELETE DENY DROP GRANT INSERT MERGE RESTORE REVOKE TRUNCATE UPDATE UPDATETEXT WRITETEXT
`)

/** Reserved words that begin, join or end other statements, or belong to such statements only. */
export const statementWords = words(`
  ADD BEGIN BREAK CHECKPOINT CLOSE COMMIT COMPUTE CONTINUE CURSOR DBCC DEALLOCATE DECLARE DISK DUMP ELSE END ERRLVL EXEC
  EXECUTE EXIT FETCH GOTO IF IDENTITY_INSERT KILL LINENO LOAD OPEN PRINT PROC PROCEDURE RAISERROR READTEXT RECONFIGURE
  RETURN REVERT ROLLBACK SAVE SET SETUSER SHUTDOWN TRAN TRANSACTION TRIGGER USE WAITFOR WHILE
`)

/** Every reserved word: none of them is a name or an alias unless it is quoted. */
export const reserved: ReadonlySet<string> = new Set([
  ...writingWords,
  ...statementWords,
  ...words(`
    ALL AND ANY AS ASC AUTHORIZATION BETWEEN BROWSE BY CASCADE CASE CHECK CLUSTERED COALESCE COLLATE COLUMN
    CONSTRAINT CONTAINS CONTAINSTABLE CONVERT CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER
    DATABASE DEFAULT DESC DISTINCT DISTRIBUTED DOUBLE ESCAPE EXCEPT EXISTS EXTERNAL FILE FILLFACTOR FOR FOREIGN FREETEXT
    FREETEXTTABLE FROM FULL FUNCTION GROUP HAVING HOLDLOCK IDENTITY IDENTITYCOL IN INDEX INNER INTERSECT INTO IS JOIN KEY
    LEFT LIKE NATIONAL NOCHECK NONCLUSTERED NOT NULL NULLIF OF OFF OFFSETS ON OPENDATASOURCE OPENQUERY OPENROWSET OPENXML
    OPTION OR ORDER OUTER OVER PERCENT PIVOT PLAN PRECISION PRIMARY PUBLIC READ REFERENCES REPLICATION RESTRICT RIGHT
    ROWCOUNT ROWGUIDCOL RULE SCHEMA SECURITYAUDIT SELECT SEMANTICKEYPHRASETABLE SEMANTICSIMILARITYDETAILSTABLE
    SEMANTICSIMILARITYTABLE SESSION_USER SOME STATISTICS SYSTEM_USER TABLE TABLESAMPLE TEXTSIZE THEN TO TOP TRY_CONVERT
    TSEQUAL UNION UNIQUE UNPIVOT USER VALUES VARYING VIEW WHEN WHERE WITH WITHIN
  `)
])

/** Table hints that take locks others wait for, or hold locks beyond the reading of a row. */
export const lockHints = words(`HOLDLOCK REPEATABLEREAD SERIALIZABLE TABLOCK TABLOCKX UPDLOCK XLOCK`)

/** Every table hint; the old way to write them is `name (hint)`, which looks like a call. */
export const tableHints: ReadonlySet<string> = new Set([
  ...lockHints,
  ...words(`
    FASTFIRSTROW FORCESCAN FORCESEEK IGNORE_CONSTRAINTS IGNORE_TRIGGERS INDEX KEEPDEFAULTS KEEPIDENTITY NOEXPAND NOLOCK
    NOWAIT PAGLOCK READCOMMITTED READCOMMITTEDLOCK READPAST READUNCOMMITTED ROWLOCK SNAPSHOT SPATIAL_WINDOW_MAX_CELLS
  `)
])

/** Functions that read the server's files, reach other servers, or have an effect. */
const fileFunctions = words(`
  fn_dblog fn_dump_dblog fn_full_dblog fn_get_audit_file fn_get_audit_file_v2 fn_trace_gettable fn_trace_getinfo
  fn_xe_file_target_read_file dm_os_file_exists dm_os_enumerate_filesystem dm_os_enumerate_fixed_drives
  fn_servershareddrives fn_virtualservernodes
`)

const effectFunctions = words(`ai_generate_embeddings ai_generate_chunks ai_generate_response`)

/** Functions of the engine beneath Babelfish, which speaks this dialect over PostgreSQL. */
const postgresFunctions = words(`
  currval database_to_xml lastval lo_close lo_creat lo_create lo_export lo_from_bytea lo_get lo_import lo_lseek lo_open
  lo_put lo_truncate lo_truncate64 lo_unlink loread lowrite nextval query_to_xml query_to_xml_and_xmlschema
  query_to_xmlschema schema_to_xml set_config setval table_to_xml txid_current
`)

export const deniedFunctions = {
  /** Keywords that are followed by the text for another server, or by a file's name. */
  keywords: words(`OPENDATASOURCE OPENQUERY OPENROWSET OPENXML`),
  /** Lower case; `schema` is empty where none is written. */
  isDenied: (name: string, schema: string): boolean =>
    fileFunctions.has(name) ||
    effectFunctions.has(name) ||
    postgresFunctions.has(name) ||
    schema === "pg_catalog" ||
    /^(?:pg_|dblink|babelfish_)/.test(name)
}
