/** Units whose tokens are nobody's to see. Whatever hides tokens goes through here. */
export const HIDDEN_UNITS = 'SELECT id FROM units'

/** Says in a query over tokens, or over their blocks, which of them may be seen now. */
export const VISIBLE = `(unit IS NULL OR unit NOT IN (${HIDDEN_UNITS}))`

/**
 * The same, as it was at an instant in the past: a list that is made in slices sees all of a unit or nothing.
 *
 * Parameters: the newest unit there was, and those that were hidden, as JSON.
 */
export const WAS_VISIBLE =
  '(unit IS NULL OR (unit <= ? AND unit NOT IN (SELECT value FROM json_each(?))))'

/** Returns the parameters of WAS_VISIBLE, as of now, in one row. */
export const NOW_VISIBLE = `SELECT
  ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'units'), 0) AS newest,
  (SELECT json_group_array(id) FROM (${HIDDEN_UNITS})) AS hidden`
