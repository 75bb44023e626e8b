import type { IncomingMessage } from 'node:http';
import { errors } from '../../errors.ts';
import type { Log } from '../../lib/log.ts';
import type { Hold } from '../../sessions/holds.ts';
import type { CreateSession, Session } from '../../sessions/schema.ts';
import type { SessionService } from '../../sessions/service.ts';
import { isObject, type Wanted } from './capabilities.ts';
import { findDriver, startDriver, valueOf, type Command, type Driver } from './driver.ts';
import { WebDriverFault } from './fault.ts';

export interface Made {
  session: Session;
  capabilities: Record<string, unknown>;
}

/**
 * WebDriver sessions: each is a session of this service, made as `POST /browsers` makes one, with a chromedriver inside. Nothing is stored:
 * a driver is known to the node that runs its session, for as long as it runs. When it ends, alone or with its browser, the session
 * stays until it is deleted or times out, and its commands are refused.
 */
export function webdriverService({
  sessions,
  log,
}: {
  sessions: Pick<SessionService, 'create' | 'hold' | 'idOf' | 'stop' | 'remove'>;
  log: Log;
}) {
  /** By the id of the session, with chromedriver's own id for it. */
  const drivers = new Map<string, { driver: Driver; driverId: string }>();

  /** Starts a driver in a session that was just made, and connects it to the browser. */
  async function drive(held: Hold, id: string, program: string, wanted: Wanted, hungUp: AbortSignal) {
    const { browser } = held.engine;
    if (!browser.confined) throw errors.sandbox_unavailable(); // its ports would be the machine's
    const driver = await startDriver(held, program);
    try {
      if (wanted.acceptInsecureCerts)
        await held.engine.control().send('Security.setIgnoreCertificateErrors', { ignore: true });
      const { capabilities, driverId } = await introduce(driver, wanted, hungUp);
      drivers.set(id, { driver, driverId });
      void driver.ended.then(() => {
        if (drivers.get(id)?.driver === driver) drivers.delete(id);
        log.info({ session: id }, 'webdriver.ended');
      });
      return capabilities;
    } catch (error) {
      driver.close();
      throw error;
    }
  }

  return {
    /** What keeps New Session from working, as a sentence. */
    lacks: (): string | undefined => (findDriver() === undefined ? noDriver : undefined),

    async create(
      { projectId, keyId }: { projectId: string; keyId: string },
      options: CreateSession,
      wanted: Wanted,
      hungUp: AbortSignal,
    ): Promise<Made> {
      const program = findDriver();
      if (program === undefined) throw errors.engine_unavailable({ detail: noDriver });
      const session = await sessions.create(projectId, keyId, options, hungUp);
      const { session_id: id } = session;
      try {
        const held = await sessions.hold(id);
        try {
          const capabilities = await drive(held, id, program, wanted, hungUp);
          hungUp.throwIfAborted();
          return { session, capabilities };
        } finally {
          held.release();
        }
      } catch (error) {
        await sessions.stop(id, 'deleted');
        throw error;
      }
    },

    /** Sends a command to the driver of a session, which is held until the answer arrives or the wait is cancelled. */
    async command(
      projectId: string,
      idOrName: string,
      { method, rest, body }: Pick<Command, 'method' | 'body'> & { rest: string },
      signal: AbortSignal,
    ): Promise<IncomingMessage> {
      const id = await sessions.idOf(projectId, idOrName, false);
      const held = await sessions.hold(id);
      try {
        signal.throwIfAborted();
        const found = drivers.get(id);
        if (!found) throw new WebDriverFault('invalid session id', driverless);
        const answer = await found.driver.ask({ method, path: `/session/${found.driverId}${rest}`, body }, signal);
        answer.once('close', held.release);
        return answer;
      } catch (error) {
        held.release();
        throw error;
      }
    },

    async remove(projectId: string, id: string): Promise<void> {
      await sessions.remove(projectId, id);
    },
  };
}

const noDriver = 'There is no chromedriver on this machine. Install the package chromium-driver.';
const driverless =
  'This session has no WebDriver: its driver or its browser ended, or the session was not created by POST /session. Create a new session.';

/** New Session at the driver itself. */
async function introduce(driver: Driver, { driver: wanted }: Wanted, hungUp: AbortSignal) {
  const chrome = { ...(wanted['goog:chromeOptions'] as object), debuggerAddress: driver.debuggerAddress };
  const body = { capabilities: { alwaysMatch: { ...wanted, 'goog:chromeOptions': chrome } } };
  const command = { method: 'POST', path: '/session', body: Buffer.from(JSON.stringify(body)) };
  const response = await driver.ask(command, hungUp);
  const value = await valueOf(response);
  const { sessionId, capabilities, error, message } = isObject(value) ? value : {};
  if (typeof sessionId !== 'string' || !/^[\w-]{1,128}$/.test(sessionId) || !isObject(capabilities))
    throw new WebDriverFault(
      error === 'invalid argument' ? error : 'session not created',
      typeof message === 'string' ? message.slice(0, 2000) : 'The driver made no session.',
    );
  return { driverId: sessionId, capabilities };
}
