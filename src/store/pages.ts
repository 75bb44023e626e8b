/** What a page of a list has at most, beside its last row. */
export const mostPageBytes = 4 * 2 ** 20;

/** A page. `cut`: rows of it were left out because of its size. */
export interface Cut<Row> {
  rows: Row[];
  cut: boolean;
}

/** `of_page`: the number of rows of the full page. */
export function cutPage<Row extends { of_page: string }>(rows: Row[]): Cut<Row> {
  return { rows, cut: rows.length < Number(rows[0]?.of_page ?? 0) };
}
