import { urlOf } from '../../lib/urls.ts';
import { entryAddresses } from './addresses.ts';
import type { Flow } from './context.ts';
import { isPast } from './decide.ts';
import { explain } from './explain.ts';

/**
 * Restarts the login after the browser has deleted the data of the site. An application with a dead token may show neither its account nor
 * its form. Once, before something is submitted, and only where a login succeeded before: the pages of other
 * sites look like this because they are other pages. If the login fails, the profile keeps what it had. False where it does not apply.
 */
export async function startAfresh(flow: Flow): Promise<boolean> {
  const { attempt, browser, draft, evidence, hosts, page } = flow;
  const { connection, recipe } = flow.input;
  const [first, ...others] = entryAddresses(connection, recipe);
  const known = recipe !== undefined || connection.postLoginUrl !== undefined;
  if (evidence.startedAfresh || first === undefined || isPast(flow) || !known) return false;
  const seen = page.look?.snapshot.frames.map(({ origin }) => origin) ?? [];
  const addresses = [
    first,
    ...others,
    ...seen,
    ...(connection.postLoginUrl === undefined ? [] : [connection.postLoginUrl]),
  ];
  const origins = new Set(addresses.filter(hosts.own).flatMap((url) => urlOf(url)?.origin ?? []));
  await explain(
    flow,
    'entering',
    'No page leads to a form, so the login starts without what the browser remembers of the site.',
  );
  evidence.startAfresh();
  attempt.startAfresh();
  draft.clear();
  await browser.forget(page.id, [...origins], hosts.own);
  await page.replace(browser, first);
  page.tryAddresses(others);
  return true;
}
