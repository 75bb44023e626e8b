import { expect, test } from 'vitest';
import type { LoginCodes, UsedMail } from '../credentials/codes/watch.ts';
import { errors } from '../errors.ts';
import { silent } from '../lib/log.ts';
import { codeWatching } from './code-watch.ts';
import type { Explained, FlowOutcome, Submitted } from './flow/types.ts';
import type { LoginInputs } from './inputs.ts';
import type { RunRow } from './run-store.ts';
import type { ConnectionRow } from './store.ts';

const connection = {
  id: 'ma_a',
  project_id: 'proj',
  credential_kind: 'stored',
  credential_id: 'cred_a',
} as ConnectionRow;
const fault = { code: 'mailbox_refused', message: 'The mailbox INBOX of ann at imap.example refuses.' } as const;

function watching({ watch, push = async () => {} }: { watch: LoginCodes['watch']; push?: LoginInputs['pushCode'] }) {
  const notes: Explained[] = [];
  const deleted: UsedMail[] = [];
  let closed = false;
  const codes = codeWatching({
    codeSources: {
      forLogin: () => ({
        begin() {},
        watch,
        accepted: async (mails) => void deleted.push(...mails),
        close: () => void (closed = true),
      }),
    },
    inputs: { pushCode: push } as LoginInputs,
    log: silent,
  })({
    connection,
    run: { id: 'run_a' } as RunRow,
    credential: () => ({ values: { email: 'ann@shop.example', password: 'not @ mail' } }),
    record: (note) => void notes.push(note),
  });
  return { codes, notes, deleted, isClosed: () => closed };
}

const wanted = { codes: true, sentAt: 1000, signal: new AbortController().signal };
const missed: FlowOutcome = { status: 'FAILED', errorCode: 'mfa_required', errorMessage: 'No code came.', typed: {} };

test('a code that is found is pushed, and its mail is deleted if the site accepts it', async () => {
  const pushed: unknown[] = [];
  let taken: (given: Submitted) => void = () => {};
  const mail = { sourceId: 'otc_a', uid: 3, uidValidity: '7' };
  const { codes, deleted, isClosed } = watching({
    async watch({ found, since, addresses, signal }) {
      expect({ since, addresses }).toEqual({ since: 1000, addresses: ['ann@shop.example'] });
      for (const code of ['111111', '111111', '222222']) await found({ code, mail: { ...mail, uid: Number(code) } });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
    async push(...given) {
      pushed.push(given);
      taken({ code: '222222', fromSource: true });
    },
  });
  const got = await codes.during(wanted, () => new Promise((resolve) => (taken = resolve)));
  expect(got).toEqual({ code: '222222', fromSource: true });
  expect(pushed).toEqual([
    ['run_a', 'ma_a', '111111', true],
    ['run_a', 'ma_a', '222222', true],
  ]);
  codes.end({ status: 'SUCCESS', typed: {}, acceptedCodes: ['222222', '999999'] });
  expect(deleted).toEqual([{ ...mail, uid: 222_222 }]);
  expect(isClosed()).toBe(true);
});

test('a fault is recorded once, and explains the end of a login that waited', async () => {
  const { codes, notes } = watching({
    async watch({ faulty }) {
      faulty('otc_a', fault);
      faulty('otc_a', fault);
    },
  });
  expect(codes.explained(missed)).toEqual(missed);
  await codes.during(wanted, async () => ({ choiceId: 'x' }));
  expect(notes.map(({ decision }) => decision)).toEqual([
    'mailbox_refused: The mailbox INBOX of ann at imap.example refuses. The login still waits for the code.',
  ]);
  const message = 'No code came. The mailbox INBOX of ann at imap.example refuses. (mailbox_refused)';
  expect(codes.explained(missed)).toMatchObject({ errorCode: 'code_source_failed', errorMessage: message });
  const person = { ...missed, errorCode: 'awaiting_input_timeout' as const };
  expect(codes.explained(person)).toMatchObject({ errorCode: 'awaiting_input_timeout', errorMessage: message });
  expect(codes.explained({ status: 'SUCCESS', typed: {} })).toEqual({ status: 'SUCCESS', typed: {} });
});

test('a mailbox that can be read again is no fault', async () => {
  const { codes } = watching({
    async watch({ faulty }) {
      faulty('otc_a', fault);
      faulty('otc_a', undefined);
    },
  });
  await codes.during(wanted, async () => ({}));
  expect(codes.explained(missed)).toMatchObject({
    errorCode: 'mfa_required',
    errorMessage: expect.stringContaining('no new code'),
  });
});

test('the sources are not read for other questions, and a login that is over takes no code', async () => {
  let asked = 0;
  const { codes } = watching({
    async watch({ found }) {
      asked++;
      await found({ code: '111111' });
    },
    push: async () => {
      throw errors.no_active_flow({ connection: 'ma_a' });
    },
  });
  expect(await codes.during({ ...wanted, sentAt: undefined }, async () => ({ choiceId: 'x' }))).toEqual({
    choiceId: 'x',
  });
  expect(asked).toBe(0);
  const late = [{ code: '111111', fromSource: true }, { code: '222222' }];
  expect(await codes.during({ ...wanted, sentAt: undefined }, async () => late.shift()!)).toEqual({ code: '222222' });
  await codes.during(wanted, async () => ({}));
  expect(asked).toBe(1);
});
