import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { keyring } from '../../lib/seal.ts';
import { tokens } from '../../lib/tokens.ts';
import { forInvitee, invitees } from './invitee.ts';
import { flowTokenPurpose, flowTokens } from './token.ts';

const key = randomBytes(32);
const pass = flowTokens(tokens(() => keyring([key]), Date.now, flowTokenPurpose));
const flow = { connectionId: 'ma_one', flowId: 'flow_one', projectId: 'proj_one', keyId: 'key_one' };
const token = pass.token(flow, new Date(Date.now() + 60_000));

const gate = (now: { flowId?: string; lapse?: 'key' | 'project' } = {}) =>
  invitees({ pass, lapseOf: async () => now.lapse, flowIdOf: async () => ('flowId' in now ? now.flowId : 'flow_one') });

test('an invitee is let in to the flow that the token is for', async () => {
  expect(await gate().admit(token, { id: 'ma_one' })).toEqual(flow);
});

test.each<[string, Parameters<typeof gate>[0], string]>([
  ['to another connection', {}, 'ma_other'],
  ['once the connection has another flow', { flowId: 'flow_two' }, 'ma_one'],
  ['once the connection is deleted', { flowId: undefined as never }, 'ma_one'],
  ['once the key is revoked', { lapse: 'key' }, 'ma_one'],
  ['once the project is deleted', { lapse: 'project' }, 'ma_one'],
])('an invitee is not let in %s', async (_, now, id) => {
  await expect(gate(now).admit(token, { id })).rejects.toMatchObject({ code: 'unauthorized' });
});

test('an invitee sees what a login needs, and nothing that lets others in or shows how it is set up', () => {
  const connection = {
    id: 'ma_one',
    domain: 'shop.example',
    flow_status: 'IN_PROGRESS',
    hosted_url: 'https://corral.example/auth/hosted/ma_one?code=x',
    credential: { name: 'shop' },
    browser_session_id: 'abc',
  };
  expect(forInvitee(connection)).toEqual({ id: 'ma_one', domain: 'shop.example', flow_status: 'IN_PROGRESS' });
});
