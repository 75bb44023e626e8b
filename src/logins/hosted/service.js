/** The service, as this page uses it: one connection, by a token that stands in no address. */

const LONGEST_WAIT_MS = 10_000;
/** Three heartbeats of the stream. */
const SILENCE_MS = 45_000;

/** The service refused. `final`: asking again is of no use. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
    this.final = [401, 403, 404, 410].includes(status);
  }
}

export function service(connectionId) {
  // Relative to this page, to work behind any proxy path.
  const at = (path) => new URL(`../connections/${encodeURIComponent(connectionId)}${path}`, location.href);
  const kept = keptToken(`login ${connectionId}`);
  let token = kept.read();

  async function ask(path, { body, signal } = {}) {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const posting = body && { method: 'POST', body: JSON.stringify(body) };
    if (posting) headers['Content-Type'] = 'application/json';
    const response = await fetch(at(path), { ...posting, headers, signal, cache: 'no-store', credentials: 'omit' });
    if (response.ok) return response;
    const { message = '' } = await response.json().catch(() => ({}));
    throw new Refused(response.status, message);
  }

  return {
    get hasToken() {
      return Boolean(token);
    },

    /** Exchanges the code of the address. A tab that did so before keeps its token. */
    async exchange(code) {
      const response = await ask('/exchange', { body: { code } });
      ({ jwt: token } = await response.json());
      kept.write(token);
    },

    state: async () => (await ask('')).json(),
    submit: (body) => ask('/submit', { body }),
    forget: () => kept.remove(),

    /** Tells each state until `isOver` says that it is the last. Connects again for as long as that may help. */
    async follow({ onState, onLost, isOver }) {
      for (let attempt = 0; !isOver(); attempt += 1) {
        try {
          await eachState(ask, (state) => {
            attempt = 0;
            onLost(false);
            onState(state);
          });
          if (isOver()) return;
          onState(await (await ask('')).json());
        } catch (error) {
          if (error.final) throw error;
          onLost(true);
        }
        if (!isOver()) await pause(Math.min(LONGEST_WAIT_MS, 500 * 2 ** attempt));
      }
    },
  };
}

async function eachState(ask, onState) {
  const silence = new AbortController();
  let timer;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), SILENCE_MS);
  };
  heard();
  try {
    const { body } = await ask('/events', { signal: silence.signal });
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    for (let read; !(read = await reader.read()).done;) {
      heard();
      const frames = (text + read.value).split('\n\n');
      text = frames.pop();
      for (const event of frames.map(eventOf)) if (event?.event === 'managed_auth_state') onState(event);
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

function eventOf(frame) {
  const data = frame
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5))
    .join('\n');
  try {
    return JSON.parse(data);
  } catch {
    return undefined; // a comment
  }
}

/** Ends early when the person comes back to the page or the network returns. */
function pause(ms) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', seen);
      removeEventListener('online', done);
      resolve();
    };
    const seen = () => document.visibilityState === 'visible' && done();
    const timer = setTimeout(done, ms * (0.75 + Math.random() / 2));
    document.addEventListener('visibilitychange', seen);
    addEventListener('online', done);
  });
}

/** The token, for as long as the tab is open, so that the page can be loaded again. Browsers may forbid it. */
function keptToken(name) {
  const tryTo = (use) => {
    try {
      return use();
    } catch {
      return undefined;
    }
  };
  return {
    read: () => tryTo(() => sessionStorage.getItem(name)),
    write: (token) => tryTo(() => sessionStorage.setItem(name, token)),
    remove: () => tryTo(() => sessionStorage.removeItem(name)),
  };
}
