/* oxlint-disable unicorn/require-post-message-target-origin -- messages between threads have no origin */
/**
 * Speaks IMAP with one mailbox. It works in a thread of its own because the server is chosen by a user: the memory of the thread is limited,
 * and work for a hostile answer stops nothing else. The service has checked the addresses; nothing is looked up here.
 */
import { isIP } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { ImapFlow } from 'imapflow';

const KIB = 1024;
/** Bounds of answers. Mails with codes are small, and only parts of others are read. */
const limits = { maxLineLength: 256 * KIB, maxLiteralSize: 256 * KIB, maxResponseSize: 512 * KIB };
/** Of all answers of one connection. */
const mostBytes = 8 * KIB * KIB;
const mostOfPart = 64 * KIB;
const mostParts = 4;
/** So many of the newest mails are looked at. */
const mostMails = 20;
const connectMs = 10_000;
/** A server without news by itself is asked again after this time, one that sends them after a longer one. */
const pollMs = 3000;
const idleMs = 15_000;

const { task, addresses, host, port, security, username, password, mailbox, ca, after, since, mail } = workerData;

class Fault extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

function faultOf(error) {
  const { code = '', authenticationFailed, mailboxMissing, tlsFailed } = error ?? {};
  if (error instanceof Fault) return code;
  if (authenticationFailed) return 'refused';
  if (mailboxMissing || code === 'NotFound') return 'missing';
  if (/^(LineTooLarge|LiteralTooLarge|ResponseTooLarge|ParserError)/.test(code)) return 'bad_answer';
  if (/^(CONNECT_TIMEOUT|GREETING_TIMEOUT|ETIMEOUT|ETIMEDOUT|UPGRADE_TIMEOUT)$/.test(code)) return 'timeout';
  if (
    tlsFailed ||
    /^(ERR_TLS|ERR_SSL|ERR_OSSL|CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_|EPROTO|STARTTLS)/.test(code)
  )
    return 'tls';
  return 'unreachable';
}

/** Of an error of the connection and the error of the command that it ended, the one that says more. */
const clearer = (one, other) => (one && faultOf(one) !== 'unreachable' ? one : (other ?? one));

async function connect() {
  let failure;
  for (const address of addresses) {
    const client = new ImapFlow({
      host: address,
      port,
      secure: security === 'tls',
      ...(security === 'tls' ? {} : { doSTARTTLS: true }),
      // An address is checked against the certificate as the host itself.
      ...(isIP(host.replace(/^\[(.*)\]$/, '$1')) ? {} : { servername: host }),
      tls: { minVersion: 'TLSv1.2', ...(ca ? { ca } : {}) },
      auth: { user: username, pass: password },
      logger: false,
      disableAutoIdle: true,
      disableCompression: true,
      connectionTimeout: connectMs,
      greetingTimeout: connectMs,
      socketTimeout: 60_000,
      clientInfo: { name: 'corral' },
      ...limits,
    });
    // Without a listener an error of the connection would end the thread without its reason.
    let reported;
    client.on('error', (error) => void (reported ??= error));
    const counting = setInterval(() => {
      if ((client.socket?.bytesRead ?? 0) <= mostBytes) return;
      reported = new Fault('bad_answer');
      client.close();
    }, 100);
    client.on('close', () => clearInterval(counting));
    try {
      await client.connect();
      if (!client.secureConnection) throw new Fault('tls');
      return { client, reason: () => reported };
    } catch (error) {
      failure = clearer(reported, error);
      clearInterval(counting);
      client.close();
      // Another address of the same server would refuse the same.
      if (faultOf(failure) === 'refused' || faultOf(failure) === 'tls') break;
    }
  }
  throw failure;
}

const text = (value, most) => (typeof value === 'string' ? value.slice(0, most) : '');
const people = (list) =>
  (Array.isArray(list) ? list : [])
    .slice(0, 50)
    .map(({ name, address }) => `${text(name, 500)} <${text(address, 500)}>`);
const values = (headers) =>
  (Buffer.isBuffer(headers) ? headers.toString('latin1', 0, 8 * KIB).split('\n') : [])
    .slice(0, 50)
    .map((line) => line.slice(line.indexOf(':') + 1, 1000).trim());

/** The parts of a mail that are its text. */
function textParts(root) {
  const found = [];
  const queue = [root];
  for (let seen = 0; queue.length > 0 && seen < 100 && found.length < mostParts; seen++) {
    const { type = '', part = '1', childNodes, disposition } = queue.shift() ?? {};
    if (Array.isArray(childNodes)) queue.push(...childNodes.slice(0, 50));
    else if (/^text\/(plain|html)$/i.test(type) && disposition !== 'attachment') found.push({ part, type });
  }
  return found;
}

async function download(client, uid, part) {
  const { content } = await client.download(String(uid), part, { uid: true, maxBytes: mostOfPart });
  if (!content) return '';
  const chunks = [];
  let length = 0;
  for await (const chunk of content) {
    chunks.push(chunk);
    if ((length += chunk.length) > 4 * mostOfPart) break;
  }
  return Buffer.concat(chunks).toString('utf8').slice(0, mostOfPart);
}

async function newMails(client, seen) {
  const { uidValidity } = client.mailbox;
  const isSame = after && String(uidValidity) === after.uidValidity;
  // The search goes by whole days; the moment is compared below.
  const query = isSame ? { uid: `${after.uidNext}:*` } : { since: new Date(since - 24 * 60 * 60 * 1000) };
  const found = (await client.search(query, { uid: true })) || [];
  const fresh = found
    .filter((uid) => Number.isInteger(uid) && !seen.has(uid) && (!isSame || uid >= after.uidNext))
    .sort((one, two) => two - one)
    .slice(0, mostMails);
  const mails = [];
  if (fresh.length === 0) return mails;
  const wanted = {
    uid: true,
    envelope: true,
    internalDate: true,
    bodyStructure: true,
    headers: ['delivered-to', 'x-original-to'],
  };
  for (const one of await client.fetchAll(fresh.join(','), wanted, { uid: true })) {
    if (!fresh.includes(one.uid) || seen.has(one.uid)) continue;
    seen.add(one.uid);
    const at = new Date(one.internalDate).getTime();
    if (!(at >= since)) continue;
    const { from, sender, to, cc, subject } = one.envelope ?? {};
    mails.push({
      parts: textParts(one.bodyStructure),
      head: {
        uid: one.uid,
        uidValidity: String(uidValidity),
        from: [...people(from), ...people(sender)],
        to: [...people(to), ...people(cc), ...values(one.headers)],
        subject: text(subject, 2000),
      },
    });
  }
  return mails.sort((one, two) => two.head.uid - one.head.uid);
}

/** The service chooses among the mails by their heads. */
const answer = () => new Promise((resolve) => parentPort.once('message', resolve));

async function watch(client) {
  const seen = new Set();
  const idles = client.capabilities.has('IDLE');
  let news = false;
  let wake = () => {};
  client.on('exists', () => {
    news = true;
    wake();
  });
  for (;;) {
    news = false;
    const mails = await newMails(client, seen);
    if (mails.length > 0) {
      const answered = answer();
      parentPort.postMessage({ heads: mails.map(({ head }) => head) });
      const { wanted } = await answered;
      for (const uid of wanted) {
        const parts = { text: '', html: '' };
        for (const { part, type } of mails.find(({ head }) => head.uid === uid).parts) {
          const kind = /html$/i.test(type) ? 'html' : 'text';
          parts[kind] += `${await download(client, uid, part)}\n`;
        }
        const taken = answer();
        parentPort.postMessage({ mail: { uid, ...parts } });
        if ((await taken).enough) break;
      }
    }
    parentPort.postMessage({ looked: true });
    if (news) continue;
    let timer;
    const woken = new Promise((resolve) => {
      wake = resolve;
      timer = setTimeout(resolve, idles ? idleMs : pollMs);
    });
    if (idles) client.idle().catch(() => wake());
    await woken;
    clearTimeout(timer);
    if (!client.usable) throw new Fault('unreachable');
    if (!idles) await client.noop();
  }
}

async function perform(client) {
  if (task === 'note') {
    const { uidNext, uidValidity } = (await client.status(mailbox, { uidNext: true, uidValidity: true })) || {};
    if (!Number.isInteger(uidNext)) throw new Fault('missing');
    return { uidNext, uidValidity: String(uidValidity) };
  }
  await client.mailboxOpen(mailbox, { readOnly: task === 'watch' });
  if (task === 'watch') return watch(client);
  if (String(client.mailbox.uidValidity) !== mail.uidValidity) return {};
  await client.messageFlagsAdd(String(mail.uid), [String.raw`\Deleted`], { uid: true });
  // Without this extension an expunge removes every mail that is marked, also by other programs.
  if (client.capabilities.has('UIDPLUS')) await client.messageDelete(String(mail.uid), { uid: true });
  return {};
}

let reason = () => {};
try {
  const connected = await connect();
  reason = connected.reason;
  const done = await perform(connected.client);
  await Promise.race([connected.client.logout(), new Promise((resolve) => setTimeout(resolve, 1000))]).catch(() => {});
  parentPort.postMessage({ done });
} catch (error) {
  parentPort.postMessage({ fault: faultOf(clearer(reason(), error)) });
}
