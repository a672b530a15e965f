/**
 * Two tables that every open file has, by which a catalog is read. Their names hold a character that XML cannot, so
 * that no sheet is hidden by them and none hides them. Plain code: the child process and the catalog share it.
 */

/** `kind`, `name`, `range`, `hidden`: what rows can be read from. */
export const objectsTable = "\u0003objects"

/**
 * `object`, `position`, `name`, `type`, `letter`, `header_row`, `rows`: the columns of those objects whose names stand
 * in the statement as string literals; no row where a name means nothing.
 */
export const columnsTable = "\u0003columns"
