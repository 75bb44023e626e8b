import { spawn } from 'node:child_process';
import { apps } from '../test/support/logins/apps/index.ts';
import { causes } from '../test/support/logins/causes/index.ts';
import {
  checkNow,
  checkUntilLoggedIn,
  connectTo,
  isLoggedIn,
  logIn,
  timeline,
  type Connection,
} from '../test/support/logins/drive.ts';
import { galleryPages } from '../test/support/logins/gallery/site.ts';
import { heldOut } from '../test/support/logins/held-out/index.ts';
import { startApp, startCase, startGalleryPage, type Subject } from '../test/support/logins/subjects.ts';
import { startService, type Service } from '../test/support/service.ts';
import { median, type Row } from './rows.ts';

/**
 * `BENCH_LOGINS=held-out,applications` takes some of the groups, `BENCH_CASES=1-12` or `BENCH_CASES=znc,adminer` some of each.
 * `BENCH_CHECKS=10` checks each login so often while it lasts; the sites of known causes are checked ten times in any case.
 * `BENCH_LOAD=4` measures beside so many processes that compute.
 */
const wantedGroups = process.env['BENCH_LOGINS']?.split(',');
const wantedCases = process.env['BENCH_CASES']?.split(',');
const atOnce = Number(process.env['BENCH_AT_ONCE'] ?? 1);
const checksOf = (group: string) => Number(process.env['BENCH_CHECKS'] ?? (group === 'causes' ? 10 : 0));
const load = Number(process.env['BENCH_LOAD'] ?? 0);

type Start = { name: string; start: () => Promise<Subject | undefined> };

const groups: Record<string, { note: string; list: Start[] }> = {
  gallery: {
    note: 'pages that the rules were written with',
    list: galleryPages.map((page) => ({ name: page.name, start: () => startGalleryPage(page) })),
  },
  causes: {
    note: 'a site for each cause of a failed login that was seen on real applications',
    list: causes.map((about) => ({ name: about.name, start: () => startCase(about) })),
  },
  'held-out': {
    note: 'pages that the rules were not written with',
    list: heldOut.map((about) => ({ name: about.name, start: () => startCase(about) })),
  },
  applications: {
    note: 'real applications, none of which the rules were written with',
    list: apps.map((app) => ({ name: app.name, start: () => startApp(app) })),
  },
};

/** How one subject went. Undefined: it was not measured, because it does not apply or an earlier step failed. */
interface Result {
  loggedIn?: boolean;
  kept?: boolean;
  again?: boolean;
  /** The checks while the login lasted, and those of them that found it over or led to another login. */
  checks?: number;
  falseEnds?: number;
  /** What was called a login and is none: a profile without a login, a wrong password, a login that the site has ended. */
  falseLogins: number;
  /** A site that refuses the right credential did so, and the reason was right. */
  refused?: boolean;
  /** A wrong password did not end AUTHENTICATED. */
  wrongKeptOut?: boolean;
  /** ... and the reason was right. */
  wrongReason?: boolean;
  times: { login?: number; again?: number; refused?: number; wrong?: number };
  /** A sentence for each thing that went wrong. */
  classes: string[];
}

/**
 * Logs in to each site with a credential, opens a session with the profile, lets the site end its sessions and has the scheduled
 * check find that; then tries a wrong password. The site itself says whether a user was there.
 */
export async function benchLogins(): Promise<Row[]> {
  const service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: '127.0.0.1,127.0.0.2', CORRAL_LOG_LEVEL: 'warn' });
  const others = Array.from({ length: load }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  try {
    return await measureGroups(service);
  } finally {
    for (const other of others) other.kill('SIGKILL');
    await service.close();
  }
}

async function measureGroups(service: Service): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [group, { note, list }] of Object.entries(groups)) {
    if (wantedGroups && !wantedGroups.includes(group)) continue;
    const chosen = list.flatMap((one, index) => (isWanted(index + 1, one.name) ? [{ ...one, number: index + 1 }] : []));
    const results: Result[] = [];
    const queue = [...chosen];
    const work = async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const result = await measure(service, next.start, checksOf(group));
        if (!result) continue;
        results.push(result);
        // Held-out cases go by number: what their pages are is not for the authors of the rules.
        const name = group === 'held-out' && !process.env['BENCH_NAMES'] ? `case ${next.number}` : next.name;
        const how = result.classes.length > 0 ? result.classes.join('; ') : 'as it should';
        console.log(`  ${group} ${name}: ${how} ${seconds(result)}`);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    rows.push(...summary(group, note, results));
  }
  return rows;
}

function isWanted(number: number, name: string): boolean {
  if (!wantedCases) return true;
  return wantedCases.some((word) => {
    const [from, to] = word.split('-').map(Number);
    return word === name || (from !== undefined && number >= from && number <= (to ?? from));
  });
}

const seconds = ({ times }: Result) =>
  `(${Object.entries(times)
    .map(([what, time]) => `${what} ${(time / 1000).toFixed(1)} s`)
    .join(', ')})`;

async function measure(
  service: Service,
  start: () => Promise<Subject | undefined>,
  checks: number,
): Promise<Result | undefined> {
  const subject = await start();
  if (!subject) return undefined;
  const result: Result = { times: {}, classes: [], falseLogins: 0 };
  try {
    if (subject.ends === 'logged in') await measureLogin(service, subject, checks, result);
    else await measureRefusal(service, subject, result);
    if (subject.knowsPasswords) await measureWrongPassword(service, subject, result);
  } catch (error) {
    result.classes.push(`the measurement failed: ${(error as Error).message.split('\n')[0]}`);
    if (subject.ends === 'logged in') result.loggedIn ??= false;
    else result.refused ??= false;
  } finally {
    await subject.close();
  }
  return result;
}

async function measureLogin(service: Service, subject: Subject, checks: number, result: Result): Promise<void> {
  const { id, profile } = await connectTo(service, subject);
  const [ended, took] = await timed(() => logIn(service, subject, id));
  result.times.login = took;
  result.loggedIn = ended.flow_status === 'SUCCESS' && ended.status === 'AUTHENTICATED';
  if (!result.loggedIn) return void result.classes.push(`not logged in: ${ending(ended)}`);
  if (!subject.stored) return;
  result.kept = await isLoggedIn(service, subject, profile);
  if (!result.kept) {
    result.falseLogins++;
    result.classes.push('the profile is not logged in in a later session');
  }
  await measureChecks(service, id, checks, result);
  // A site that asks for more than the credential has needs a person.
  if (!subject.endSessions || (subject.meanwhile && !subject.meanwhile.optional)) return;
  await subject.endSessions();
  const [after, tookAgain] = await timed(() => checkUntilLoggedIn(service, id));
  result.times.again = tookAgain;
  result.again = after.status === 'AUTHENTICATED' && (await isLoggedIn(service, subject, profile));
  if (!result.again && after.status === 'AUTHENTICATED') result.falseLogins++;
  if (!result.again) result.classes.push(`not re-authenticated: ${after.status}, ${ending(after)}`);
  await service.call('DELETE', `/auth/connections/${id}`);
}

/** Checks of a login that lasts. Each must find it, and none may lead to a login. */
async function measureChecks(service: Service, id: string, checks: number, result: Result): Promise<void> {
  if (checks === 0) return;
  result.checks = checks;
  result.falseEnds = 0;
  for (let done = 0; done < checks; done++) {
    const before = (await timeline(service, id)).filter(({ type }) => type === 'reauth').length;
    const { status } = await checkNow(service, id);
    const logins = (await timeline(service, id)).filter(({ type }) => type === 'reauth').length - before;
    if (status === 'NEEDS_AUTH' || logins > 0) result.falseEnds++;
  }
  if (result.falseEnds > 0) result.classes.push(`${result.falseEnds} of ${checks} checks found the login over`);
}

async function measureRefusal(service: Service, subject: Subject, result: Result): Promise<void> {
  const { codes, orWaits } = subject.ends as Exclude<Subject['ends'], string>;
  const { id } = await connectTo(service, subject);
  const [ended, took] = await timed(() => logIn(service, subject, id));
  result.times.refused = took;
  const waits = ended.flow_status === 'IN_PROGRESS' && ended.flow_step === orWaits;
  result.refused = ended.status === 'NEEDS_AUTH' && (waits || codes.includes(ended.error_code ?? ''));
  if (!result.refused) result.classes.push(`not refused for ${codes.join(' or ')}: ${ending(ended)}`);
  tooMany(subject, 0, result);
  await service.call('DELETE', `/auth/connections/${id}`);
}

async function measureWrongPassword(service: Service, subject: Subject, result: Result): Promise<void> {
  const values = { ...subject.values, password: `Not-${subject.values['password']}` };
  const { id } = await connectTo(service, subject, values);
  const before = subject.submits?.() ?? 0;
  const [ended, took] = await timed(() => logIn(service, subject, id));
  result.times.wrong = took;
  result.wrongKeptOut = ended.status !== 'AUTHENTICATED';
  const asksAgain = ended.flow_step === 'AWAITING_INPUT' && ended.website_error !== null;
  // A site that refuses every login may give its own reason first.
  const also = subject.ends === 'logged in' ? [] : subject.ends.codes;
  const waits = subject.ends !== 'logged in' && ended.flow_step === subject.ends.orWaits;
  result.wrongReason =
    result.wrongKeptOut && (asksAgain || waits || ['credentials_invalid', ...also].includes(ended.error_code ?? ''));
  if (!result.wrongKeptOut) result.falseLogins++;
  if (!result.wrongKeptOut) result.classes.push('a wrong password ended AUTHENTICATED');
  else if (!result.wrongReason) result.classes.push(`a wrong password was given another reason: ${ending(ended)}`);
  tooMany(subject, before, result);
  await service.call('DELETE', `/auth/connections/${id}`);
}

/** Accounts get locked by more. HTTP Basic sends the password with every request, so it is not counted. */
function tooMany(subject: Subject, before: number, result: Result): void {
  const submits = (subject.submits?.() ?? 0) - before;
  if (subject.stored && submits > 2) result.classes.push(`the password was submitted ${submits} times`);
}

const ending = (now: Connection) =>
  [now.flow_status, now.flow_status === 'IN_PROGRESS' ? now.flow_step : undefined, now.error_code]
    .filter(Boolean)
    .join(' ');

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const start = performance.now();
  const result = await work();
  return [result, performance.now() - start];
}

function summary(group: string, note: string, results: Result[]): Row[] {
  const rate = (
    what: string,
    key: 'loggedIn' | 'kept' | 'again' | 'refused' | 'wrongKeptOut' | 'wrongReason',
    bar?: string,
  ) => {
    const measured = results.filter((result) => result[key] !== undefined);
    const good = measured.filter((result) => result[key]).length;
    if (measured.length === 0) return [];
    const beside = `${good} of ${measured.length}${key === 'loggedIn' ? `: ${note}` : ''}`;
    return [
      { what: `${group}: ${what}`, value: (100 * good) / measured.length, unit: '%', beside, ...(bar ? { bar } : {}) },
    ];
  };
  const time = (what: string, key: keyof Result['times']) => {
    const times = results.flatMap(({ times }) => (times[key] === undefined ? [] : [times[key] / 1000]));
    if (times.length === 0) return [];
    return [
      {
        what: `${group}: ${what}`,
        value: median(times),
        unit: 's',
        beside: `median; longest ${Math.max(...times).toFixed(1)} s`,
      },
    ];
  };
  const sum = (of: (result: Result) => number | undefined) => results.reduce((all, one) => all + (of(one) ?? 0), 0);
  const checked = sum(({ checks }) => checks);
  const beside = load > 0 ? `beside ${load} processes that compute` : 'of all logins and checks';
  return [
    { what: `${group}: false successes`, value: sum(({ falseLogins }) => falseLogins), unit: '', beside, bar: '0' },
    ...(checked === 0
      ? []
      : [
          {
            what: `${group}: checks that called a login over that was not`,
            value: sum(({ falseEnds }) => falseEnds),
            unit: '',
            beside: `of ${checked}`,
            bar: '0',
          },
        ]),
    ...rate('logged in', 'loggedIn'),
    ...time('a login', 'login'),
    ...rate('kept logged in', 'kept'),
    ...rate('re-authenticated after the site ended its sessions', 'again'),
    ...time('a check and a login', 'again'),
    ...rate('refused with the right reason', 'refused'),
    ...time('a refusal', 'refused'),
    ...rate('wrong password kept out', 'wrongKeptOut', '100 %'),
    ...rate('wrong password, right reason', 'wrongReason'),
    ...time('a wrong password', 'wrong'),
  ];
}
