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
  fn_get_audit_file fn_get_audit_file_v2 fn_msxe_read_event_stream fn_trace_gettable fn_trace_getinfo
  dm_os_file_exists dm_os_enumerate_filesystem dm_os_enumerate_fixed_drives fn_servershareddrives fn_virtualservernodes
`)

/** Readers of the transaction log and of event files, of which there are several each. */
const fileFunction = /^fn_(?:(?:full_)?(?:dump_)?dblog.*|xe_.*read_file)$/

/** What they are given leaves for a model elsewhere. */
const modelFunctions = words(`
  ai_analyze_sentiment ai_classify ai_extract ai_fix_grammar ai_generate_embeddings ai_generate_response ai_summarize
  ai_translate
`)

/** Functions of the engine beneath Babelfish, which speaks this dialect over PostgreSQL. */
const postgresFunctions = words(`
  brin_desummarize_range brin_summarize_new_values brin_summarize_range currval cursor_to_xml cursor_to_xmlschema
  database_to_xml database_to_xml_and_xmlschema database_to_xmlschema gin_clean_pending_list lastval lo_close lo_creat
  lo_create lo_export lo_from_bytea lo_get lo_import lo_lseek lo_open lo_put lo_truncate lo_truncate64 lo_unlink loread
  lowrite nextval openquery_internal query_to_xml query_to_xml_and_xmlschema query_to_xmlschema schema_to_xml
  schema_to_xml_and_xmlschema schema_to_xmlschema set_config setseed setval table_to_xml table_to_xml_and_xmlschema
  table_to_xmlschema ts_rewrite ts_stat txid_current
`)

/** Those of its functions that are called where one argument is written as if it had such a column. */
const columnFunctions = new Set([
  ...postgresFunctions,
  ...words(`
    dblink dblink_connect dblink_disconnect dblink_exec pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock
    pg_advisory_unlock_shared pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_cancel_backend pg_create_restore_point
    pg_drop_replication_slot pg_log_backend_memory_contexts pg_ls_dir pg_promote pg_read_binary_file pg_read_file
    pg_replication_origin_create pg_replication_origin_drop pg_sleep pg_sleep_for pg_sleep_until pg_stat_file
    pg_stat_reset_shared pg_stat_reset_single_function_counters pg_stat_reset_single_table_counters pg_stat_reset_slru
    pg_terminate_backend pg_try_advisory_lock pg_try_advisory_lock_shared pg_try_advisory_xact_lock
    pg_try_advisory_xact_lock_shared
  `)
])

const foreignText = words(`OPENDATASOURCE OPENQUERY OPENROWSET OPENXML`)

export const deniedFunctions = {
  /** Keywords that are followed by the text for another server, or by a file's name. */
  keywords: foreignText,
  /** Lower case; `schema` is empty where none is written. */
  isDenied: (name: string, schema: string): boolean =>
    fileFunctions.has(name) ||
    fileFunction.test(name) ||
    modelFunctions.has(name) ||
    postgresFunctions.has(name) ||
    foreignText.has(name.toUpperCase()) ||
    // What are procedures elsewhere, Babelfish has in part as functions.
    (/^[sx]p_/.test(name) && (schema === "" || schema === "sys")) ||
    schema === "pg_catalog" ||
    /^(?:pg_|dblink|babelfish_)/.test(name),
  /** Whether naming a column so may call a function. */
  isDeniedColumn: (name: string): boolean => columnFunctions.has(name)
}
