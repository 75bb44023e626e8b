import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseBody } from '../src/api/body.ts';
import { parseQuery } from '../src/api/query.ts';
import { excessOf } from '../src/chromium/bidi/bounds.ts';
import { destinationOf as destinationOfRequest } from '../src/chromium/cdp/network-facts.ts';
import { chord, characterKey, isAmerican, keyNamed } from '../src/chromium/computer/keys.ts';
import { parseAllowList } from '../src/chromium/egress/destinations.ts';
import { endToEnd, parseAbsolute, parseAuthority } from '../src/chromium/egress/http-words.ts';
import { basicLogin, bypassRules, namedProxy } from '../src/chromium/egress/named-proxy.ts';
import { loginRefused } from '../src/chromium/egress/proxy-handshake.ts';
import { inHostsFile } from '../src/chromium/egress/resolver.ts';
import { announcedLength } from '../src/chromium/pages/body-stream.ts';
import { gatewayRefusal, transportError } from '../src/chromium/pages/net-errors.ts';
import { addressOf, destinationOf } from '../src/chromium/pages/viewer-messages.ts';
import { namesFor } from '../src/chromium/sandbox/session-files.ts';
import { widgetAt } from '../src/chromium/telemetry/captcha.ts';
import { bodyLimit, cleanBody, cleanHeaders, cleanUrl, cutBytes, cutText } from '../src/chromium/telemetry/redact.ts';
import {
  withoutSecretPairs,
  withoutSecretParts,
  withoutSecretsInJson,
} from '../src/chromium/telemetry/secret-fields.ts';
import { outcomeOf } from '../src/chromium/workshop/worker-reports.ts';
import { answeredHeaders, passedOnHeaders } from '../src/cluster/headers.ts';
import { candidatesIn } from '../src/credentials/codes/candidates.ts';
import { codeIn } from '../src/credentials/codes/find-code.ts';
import { textOfHtml } from '../src/credentials/codes/html-text.ts';
import { withoutLinks } from '../src/credentials/codes/links.ts';
import { fitsPattern } from '../src/credentials/codes/pattern.ts';
import { postedMessage } from '../src/credentials/codes/posted.ts';
import { folded, marksIn } from '../src/credentials/codes/words.ts';
import { domainOf, fit, looksLikeDomain } from '../src/credentials/domains.ts';
import { contentsOfTable } from '../src/credentials/providers/fields.ts';
import { parseTotp } from '../src/credentials/totp.ts';
import { readForm } from '../src/deployments/form.ts';
import { redactor } from '../src/deployments/redact.ts';
import { readSince } from '../src/deployments/since.ts';
import { inches } from '../src/doors/browserless/paper.ts';
import { textArray } from '../src/store/text-array.ts';
import { storeIdOf } from '../src/extensions/crx.ts';
import { accepts } from '../src/lib/accept-encoding.ts';
import { fromBase64 } from '../src/lib/base64.ts';
import { namedByConnection } from '../src/lib/hop-by-hop.ts';
import { nearest } from '../src/lib/nearest.ts';
import { withShortStrings } from '../src/lib/json-strings.ts';
import { isLight } from '../src/lib/json-weight.ts';
import { hasCertificates } from '../src/lib/pem.ts';
import { parseKey } from '../src/lib/seal.ts';
import { textFinder, withoutPlaces } from '../src/lib/text-finder.ts';
import {
  beginningOf,
  commaList,
  isWellFormed,
  storable,
  storableJson,
  withoutEnd,
  withoutStart,
} from '../src/lib/text.ts';
import { urlOf } from '../src/lib/urls.ts';
import { redactedAddress } from '../src/lib/redacted-address.ts';
import { redactText } from '../src/logger.ts';
import { isAtPage, isSameAddress, keptAddress, pageAddress, shownAddress } from '../src/logins/flow/addresses.ts';
import { hostOf, isHttps, ssoProviderOf } from '../src/logins/flow/hosts.ts';
import { isSecretName, isShownName } from '../src/logins/flow/values.ts';
import { isLockedText } from '../src/logins/reading/errors.ts';
import { hasMail, maskedTarget } from '../src/logins/reading/masked.ts';
import { isLoginPath, isLogoutPath, isSureLoginPath, pathOf } from '../src/logins/reading/page.ts';
import { read } from '../src/logins/reading/read.ts';
import { attributeWords, plain, words as wordsOf } from '../src/logins/reading/words/match.ts';
import { cut, refuseSecrets, segment } from '../src/mcp/answers.ts';
import { sectionsOf } from '../src/mcp/docs.ts';
import { toolsets } from '../src/mcp/server.ts';
import { placeOf } from '../src/org/strangers.ts';
import { bypassHosts, proxyHost } from '../src/proxies/hosts.ts';
import { checkedHeaders, handedOn, passedBack } from '../src/sessions/curl/headers.ts';
import { plainName } from '../src/sessions/live-view/session-files.ts';
import { consoleLine } from '../src/sessions/logs/console.ts';
import { byteRange } from '../src/sessions/replays/range.ts';
import { numberOf } from '../src/telemetry/export/source.ts';
import { pngSize } from '../src/telemetry/export/trace-lines.ts';
import { headOf, renumbered } from '../src/telemetry/record.ts';
import { secretFilter } from '../src/telemetry/secret-filter.ts';
import { sinceUs, untilUs } from '../src/telemetry/times.ts';
import { button, form, heading, input, link, password, radio, snapshot, words } from './support/logins/snapshot.ts';

const src = join(import.meta.dirname, '../src');
const secrets = Array.from({ length: 200 }, (_, at) => `secret_${'a'.repeat(20 + (at % 40))}${at}`);
const redact = redactor(secrets);
const filter = secretFilter();
filter.add(secrets.map((password) => ({ password })));
const someWords = wordsOf({ en: 'log in|sign in*|password', de: 'anmelden|passwort*' });

const address = (text: string) => `https://a.example/?a=${text}`;

/** What takes a text that a client, a page or the network chooses, by file and name; and how it takes it. */
const functions: Record<string, (text: string) => unknown> = {
  'api/body.ts parseBody': parseBody,
  'api/query.ts parseQuery': parseQuery,
  'chromium/bidi/bounds.ts excessOf': (text) => excessOf('browsingContext.navigate', { url: text }),
  'chromium/cdp/network-facts.ts destinationOf': (text) => destinationOfRequest(address(text)),
  'chromium/computer/keys.ts characterKey': characterKey,
  'chromium/computer/keys.ts chord': chord,
  'chromium/computer/keys.ts isAmerican': isAmerican,
  'chromium/computer/keys.ts keyNamed': keyNamed,
  'chromium/egress/destinations.ts parseAllowList': parseAllowList,
  'chromium/egress/http-words.ts endToEnd': (text) => endToEnd(['Connection', text, 'A', 'b']),
  'chromium/egress/http-words.ts parseAbsolute': (text) => parseAbsolute(`http://${text}`),
  'chromium/egress/http-words.ts parseAuthority': (text) => parseAuthority(text),
  'chromium/egress/named-proxy.ts basicLogin': basicLogin,
  'chromium/egress/named-proxy.ts bypassRules': (text) =>
    bypassRules(text)({ scheme: 'http', host: text.slice(0, 255), port: 80 }),
  'chromium/egress/named-proxy.ts namedProxy': namedProxy,
  'chromium/egress/proxy-handshake.ts loginRefused': loginRefused,
  'chromium/egress/resolver.ts inHostsFile': (text) => inHostsFile(text, 'a.example'),
  'chromium/pages/net-errors.ts gatewayRefusal': gatewayRefusal,
  'chromium/pages/net-errors.ts transportError': transportError,
  'chromium/pages/viewer-messages.ts addressOf': addressOf,
  'chromium/pages/viewer-messages.ts destinationOf': (text) => destinationOf(text, 'https://search.example/?q=%s'),
  'chromium/sandbox/session-files.ts namesFor': (text) => namesFor(text).next(),
  'chromium/telemetry/captcha.ts widgetAt': (text) => widgetAt(address(text)),
  'chromium/telemetry/redact.ts bodyLimit': bodyLimit,
  'chromium/telemetry/redact.ts cleanBody': (text) => cleanBody(text, 2 ** 20),
  'chromium/telemetry/redact.ts cleanHeaders': (text) => cleanHeaders({ a: text }),
  'chromium/telemetry/redact.ts cleanUrl': (text) => cleanUrl(address(text)),
  'chromium/telemetry/redact.ts cutBytes': (text) => cutBytes(text, 2 ** 20),
  'chromium/telemetry/redact.ts cutText': (text) => cutText(text, 2 ** 20),
  'chromium/telemetry/secret-fields.ts withoutSecretPairs': withoutSecretPairs,
  'chromium/telemetry/secret-fields.ts withoutSecretParts': withoutSecretParts,
  'chromium/telemetry/secret-fields.ts withoutSecretsInJson': withoutSecretsInJson,
  'chromium/workshop/worker-reports.ts outcomeOf': outcomeOf,
  'cluster/headers.ts answeredHeaders': (text) => answeredHeaders({ connection: text }),
  'cluster/headers.ts passedOnHeaders': (text) =>
    passedOnHeaders({ url: '/', rawHeaders: ['a', 'b'], headers: { connection: text } } as never),
  'credentials/codes/candidates.ts candidatesIn': candidatesIn,
  'credentials/codes/find-code.ts codeIn': (text) => [codeIn({ subject: text, text }), codeIn({ html: text })],
  'credentials/codes/html-text.ts textOfHtml': textOfHtml,
  'credentials/codes/links.ts withoutLinks': withoutLinks,
  'credentials/codes/pattern.ts fitsPattern': (text) => [fitsPattern(text, 'a*b*c'), fitsPattern('subject', text)],
  'credentials/codes/posted.ts postedMessage': (text) => [
    postedMessage('text/plain', text),
    postedMessage('application/json', JSON.stringify({ text })),
    postedMessage('application/x-www-form-urlencoded', text),
  ],
  'credentials/codes/words.ts folded': folded,
  'credentials/codes/words.ts marksIn': marksIn,
  'credentials/domains.ts domainOf': domainOf,
  'credentials/domains.ts fit': (text) => fit(text, 'shop.example'),
  'credentials/domains.ts looksLikeDomain': looksLikeDomain,
  'credentials/providers/fields.ts contentsOfTable': (text) => contentsOfTable({ [text]: text }),
  'credentials/totp.ts parseTotp': (text) => parseTotp(text),
  'deployments/form.ts readForm': (text) => readForm(new Map([['env_vars', text]]), true),
  'deployments/form.ts readForm, a name': (text) => readForm(new Map([[`env_vars[${text}`, '']]), true),
  'deployments/redact.ts redactor': redact,
  'deployments/redact.ts redactor, the text as a secret': (text) => redactor([text])(text),
  'deployments/since.ts readSince': (text) => readSince(text),
  'doors/browserless/paper.ts inches': inches,
  'store/text-array.ts textArray': (text) => textArray(`{"${text}"}`),
  'extensions/crx.ts storeIdOf': (text) => storeIdOf(address(text)),
  'lib/accept-encoding.ts accepts': (text) => accepts(text, 'br'),
  'lib/base64.ts fromBase64': fromBase64,
  'lib/hop-by-hop.ts namedByConnection': namedByConnection,
  'lib/nearest.ts nearest': (text) => nearest(text, ['headless', 'timeout_seconds', 'profile']),
  'lib/json-aside.ts isJson': (text) => isLight(text), // heavy JSON is parsed in a thread
  'lib/json-strings.ts withShortStrings': (text) => [
    withShortStrings(Buffer.from(text), 100),
    withShortStrings(Buffer.from(JSON.stringify(text)), 100),
  ],
  'lib/json-weight.ts isLight': (text) => isLight(JSON.stringify(text), 1),
  'lib/pem.ts hasCertificates': hasCertificates,
  'lib/seal.ts parseKey': parseKey,
  'lib/text.ts beginningOf': (text) => beginningOf(text, text.length / 2),
  'lib/text.ts commaList': commaList,
  'lib/text-finder.ts withoutPlaces': (text) => withoutPlaces(text, textFinder(secrets, 32)(text), ''),
  'lib/text.ts isWellFormed': isWellFormed,
  'lib/text.ts storable': storable,
  'lib/text.ts storableJson': storableJson,
  'lib/urls.ts urlOf': (text) => [urlOf(text), urlOf(`http://${text}`), urlOf(address(text))],
  'lib/text.ts withoutEnd': (text) => [withoutEnd(text, '/'), withoutEnd(text, /[\s:*]/)],
  'lib/text.ts withoutStart': (text) => withoutStart(text, '/'),
  'lib/redacted-address.ts redactedAddress': (text) => redactedAddress(address(text)),
  'logger.ts redactText': redactText,
  'logins/flow/addresses.ts isAtPage': (text) => isAtPage(address(text), address(text)),
  'logins/flow/addresses.ts isSameAddress': (text) => isSameAddress(address(text), address(text)),
  'logins/flow/addresses.ts keptAddress': (text) => keptAddress(address(text)),
  'logins/flow/addresses.ts pageAddress': (text) => pageAddress(address(text)),
  'logins/flow/addresses.ts shownAddress': (text) => shownAddress(address(text)),
  'logins/flow/hosts.ts hostOf': (text) => hostOf(address(text)),
  'logins/flow/hosts.ts isHttps': (text) => isHttps(address(text)),
  'logins/flow/hosts.ts ssoProviderOf': (text) => ssoProviderOf(address(text)),
  'logins/flow/values.ts isSecretName': isSecretName,
  'logins/flow/values.ts isShownName': isShownName,
  'logins/reading/errors.ts isLockedText': (text) => isLockedText(text, true),
  'logins/reading/masked.ts hasMail': hasMail,
  'logins/reading/masked.ts maskedTarget': maskedTarget,
  'logins/reading/page.ts isLoginPath': isLoginPath,
  'logins/reading/page.ts isLogoutPath': isLogoutPath,
  'logins/reading/page.ts isSureLoginPath': isSureLoginPath,
  'logins/reading/page.ts pathOf': (text) => pathOf(address(text)),
  // A page's texts are a few KiB each, and hundreds of words are looked for in them.
  'logins/reading/read.ts read': (text) => {
    const said = text.slice(0, text.length / 16);
    const parts = [
      heading(said),
      words(said),
      ...form([input(said), password(said), radio(said), button(said)]),
      link(said, '/x'),
    ];
    return read(snapshot(parts, { url: 'https://shop.example/login' }), { domain: 'shop.example' });
  },
  'logins/reading/words/match.ts attributeWords': attributeWords,
  'logins/reading/words/match.ts plain': plain,
  'logins/reading/words/match.ts words': (text) => [someWords.in(text), someWords.count(text)],
  'mcp/answers.ts cut': (text) => cut(text, ''),
  'mcp/answers.ts refuseSecrets': (text) => refuseSecrets({ [text]: text }),
  'mcp/answers.ts segment': segment,
  'mcp/docs.ts sectionsOf': (text) => sectionsOf('page', text),
  'mcp/server.ts toolsets': toolsets,
  'org/strangers.ts placeOf': placeOf,
  'proxies/hosts.ts bypassHosts': (text) => bypassHosts([text]),
  'proxies/hosts.ts proxyHost': proxyHost,
  'sessions/curl/headers.ts checkedHeaders': (text) => checkedHeaders({ [text]: text }),
  'sessions/curl/headers.ts handedOn': (text) => handedOn({ connection: text, 'user-agent': text, accept: text }),
  'chromium/pages/body-stream.ts announcedLength': (text) =>
    announcedLength(text.match(/.{1,8}/gs)!.map((value) => ['content-length', value])),
  'sessions/curl/headers.ts passedBack': (text) => passedBack(text.match(/.{1,8}/gs)!.map((value) => ['a', value])),
  'sessions/live-view/session-files.ts plainName': plainName,
  'sessions/logs/console.ts consoleLine': (text) => consoleLine({ ts: 0, data: { args: [text] } }),
  'sessions/replays/range.ts byteRange': (text) => byteRange(text, 1000),
  'telemetry/export/source.ts numberOf': numberOf,
  'telemetry/export/trace-lines.ts pngSize': pngSize,
  'telemetry/record.ts headOf': headOf,
  'telemetry/record.ts renumbered': (text) => renumbered(text, 1),
  'telemetry/secret-filter.ts secretFilter': (text) => filter.clean(text),
  'telemetry/secret-filter.ts secretFilter, the text as a secret': (text) => {
    const own = secretFilter();
    own.add([{ password: text.slice(0, text.length / 2) }]);
    return own.clean(text);
  },
  'telemetry/times.ts sinceUs': (text) => sinceUs(text, Date.now()),
  'telemetry/times.ts untilUs': untilUs,
};

/** Each unit makes some search fail late: a character, or the beginning of a text that is searched for. */
const repeated = [
  ...' /=-_.:"\\%#&*,@<[(0ax\n\t•é'.split(''),
  '\r\n',
  '😀',
  '-----BEGIN CERTIFICATE-----',
  'name="pwd',
  'name="password"\r\n',
  '&password',
  '&a=1',
  '"password":"',
  '"code" : ',
  'eyJ',
  'eyJhbGciOi.eyJ',
  'http://a:',
  '://a@',
  'a.b@',
  '+49 (',
  '**',
  'sign in with ',
  'secret_aaaaaaaaaaaaaaaaaaaa',
  'sk_',
  '/*',
  '1h',
  '%41',
  '{"a":',
  'code ',
  '<td>',
  '&#1',
  '1 2-',
];
const LENGTH = 64 * 1024;
/** What takes less is the machine's noise, and the collection of garbage. The square of a text takes many times as long. */
const NOISE_MS = 50;

/** Processor time in milliseconds: the smallest of some runs, since noise only adds. */
function cost(run: (text: string) => unknown, text: string, runs: number): number {
  let least = Infinity;
  for (let count = 0; count < runs; count++) {
    const before = process.cpuUsage();
    try {
      run(text);
    } catch {
      // A refusal is an answer too.
    }
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

/** Built once, from bytes: V8 would flatten a concatenated string at its first read, which would be measured. */
const texts = repeated.map((unit) => {
  const ofLength = (length: number) => Buffer.from(`${unit.repeat(length / unit.length)}\u0001`).toString();
  return { unit, short: [ofLength(LENGTH / 8), ofLength(LENGTH / 4)], long: [ofLength(LENGTH), ofLength(2 * LENGTH)] };
});

/** A sentence if twice the text takes more than three times as long. What takes long is compared where it still ends. */
function slower(run: (text: string) => unknown, { unit, short, long }: (typeof texts)[number]): string | undefined {
  const [one, two] = (cost(run, short[0]!, 1) < NOISE_MS / 3 ? long : short) as [string, string];
  if (cost(run, two, 1) < NOISE_MS) return undefined;
  const [once, twice] = [cost(run, one, 4), cost(run, two, 4)];
  return twice < NOISE_MS || twice <= 3 * once
    ? undefined
    : `${one.length} characters of ${JSON.stringify(unit)}: ${once.toFixed(1)} ms, twice as many ${twice.toFixed(1)} ms`;
}

test.each(Object.entries(functions))(
  '%s takes a text of twice the length in at most three times the time',
  (name, run) => {
    const some = name.endsWith(' read') ? texts.filter((_, at) => at % 6 === 0) : texts;
    let found: string | undefined;
    for (const text of some) found ??= slower(run, text);
    expect(found).toBeUndefined();
  },
);

/** Rooms whose text is the operator's or the service's own, and code that runs in browsers. */
const ownRooms =
  /^(cli|store|docs|console|app|errors)\/|^chromium\/(sandbox|guest|recorder|display|browser|workshop)\/|^logins\/hosted\/|\/web\//;

/** What parses an address with `URL` itself, instead of `urlOf`, and why its host is short. */
const parsers: Record<string, string> = {
  'lib/urls.ts': 'urlOf',
  'lib/setting-values.ts': 'of the operator',
  'cluster/forward.ts': 'of a node, from its settings',
  'cluster/service.ts': 'of a node, from its settings',
  'extensions/chrome-store.ts': 'of the operator',
  'proxies/checker.ts': 'of the operator, or a URL by urlOf',
  'doors/webdriver/routes.ts': 'of the service',
  'sessions/browser/routes.ts': 'of the service',
  'mcp/service.ts': 'of the service, with a path that begins with a name',
  'chromium/egress/destinations.ts': 'a host of 255 letters',
  'chromium/forms/forms.ts': 'checked by urlOf (checkAddress)',
  'chromium/pages/browser-request.ts': 'checked by urlOf (sessions/curl)',
  'credentials/providers/items.ts': 'checked by urlOf (login_url)',
  'credentials/providers/source.ts': 'checked by urlOf (server_url)',
  'logins/flow/addresses.ts': 'checked by urlOf (hostOf)',
  'logins/flow/permission.ts': 'checked by urlOf (hostOf)',
  'logins/flow/state-loop.ts': 'opened by Chromium, of 2048 letters',
  'logins/flow/success.ts': 'opened by Chromium, of 2000 letters',
};

test('addresses from outside are parsed by urlOf', () => {
  const parsing = /\bnew URL\((?!.*\bimport\.meta\.url\b)|\bURL\.(?:canParse|parse)\(/;
  const found = sources().filter((file) => parsing.test(readFileSync(join(src, file), 'utf8')));
  expect(found.sort()).toEqual(Object.keys(parsers).sort());
});

/** What takes a text that the service or its operator has written: ids, paths of files, names of methods. */
const own = new Set([
  'api/schema.ts bytesAs',
  'api/schema.ts empty',
  'lib/schema.ts named',
  'lib/setting-values.ts checkUrl',
  'lib/setting-values.ts flag',
  'lib/setting-values.ts headerPairs',
  'lib/setting-values.ts httpUrl',
  'lib/setting-values.ts list',
  'lib/setting-values.ts path',
  'lib/setting-values.ts postgresUrl',
  'lib/setting-values.ts regionName',
  'lib/setting-values.ts searchUrl',
  'lib/setting-values.ts spares',
  'lib/setting-values.ts text',
  'lib/setting-values.ts wildcardUrl',
  'api/server.ts mayChange',
  'chromium/bidi/log-entries.ts isLogEvent',
  'chromium/bidi/log-entries.ts noted',
  'chromium/cdp/session.ts newSession',
  'chromium/egress/http-words.ts refuseTrace',
  'chromium/forms/traffic.ts pageTraffic',
  'api/stream-places.ts takeProjectPlace',
  'api/stream-places.ts takeStreamPlace',
  'chromium/bidi/params.ts parseParams',
  'chromium/telemetry/target.ts isWorker',
  'chromium/telemetry/target.ts wireType',
  'cluster/credential.ts digestOf',
  'cluster/forward.ts wayTo',
  'credentials/codes/settings.ts hashOf',
  'credentials/providers/service-account.ts serviceAccountSource',
  'credentials/providers/source.ts pathPart',
  'lib/json-parts.ts jsonListParts',
  'doors/browserless/page.ts asRefusal',
  'doors/steel/scrape.ts asDataUrl',
  'extensions/archive.ts checkExtension',
  'extensions/archive.ts unpackExtension',
  'extensions/chrome-store.ts fetchCrx',
  'uploads/uploads.ts uploads',
  'uploads/zip.ts checkZip',
  'uploads/zip.ts unfit',
  'uploads/zip.ts withEntries',
  'lib/disk-space.ts diskSpace',
  'lib/files.ts createOnce',
  'lib/files.ts readIfThere',
  'lib/files.ts replaceFile',
  'lib/forwarded-routes.ts isCreation',
  'lib/forwarded-routes.ts mayBeElsewhere',
  'lib/forwarded-routes.ts sessionParameter',
  'lib/ids.ts pick',
  'lib/look.ts coloursFor',
  'lib/web-files.ts webFile',
  'logger.ts openLogger',
  'logins/flow/decision.ts frameSentence',
  'logins/flow/signs.ts hashOf',
  'mcp/answers.ts text',
  'mcp/docs.ts readPage',
  'mcp/docs.ts searchDocs',
  'org/api-keys.ts hashOf',
  'proxies/upstreams.ts readUpstreams',
  'sessions/live-view/assets.ts liveViewAsset',
  'sessions/logs/service.ts openKeptLog',
  'sessions/replays/files.ts replayFiles',
  'sessions/request.ts rowFor',
  'sessions/roster.ts notFoundIfEnded',
  'telemetry/cursor.ts cursorOf',
  'telemetry/cursor.ts seqOf',
  'telemetry/otlp/service.ts isSent',
  'telemetry/service-events.ts liveViewConnect',
  'telemetry/service-events.ts liveViewDisconnect',
  'telemetry/service-events.ts serviceCrashed',
]);

test('every exported function that takes a text is in the table above, or is one of those for texts of our own', () => {
  const missing = sources()
    .flatMap(textFunctionsOf)
    .filter((name) => !(name in functions) && !own.has(name));
  expect(missing).toEqual([]);
});

function sources(): string[] {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
  return files.filter((file) => /(?<!\.test|\.d)\.ts$/.test(file) && !ownRooms.test(file));
}

/** The exported functions of a source whose first parameter is a string, or may be one. */
function textFunctionsOf(file: string): string[] {
  const code = readFileSync(join(src, file), 'utf8');
  const exported =
    /^export (?:async )?(?:function\*? |const )(\w+)(?: = (?:async )?)?(?:<[^>]*>)?\(\s*\w+\??:\s*string\b(?!\[)/gm;
  return [...code.matchAll(exported)].map(([, name]) => `${file} ${name}`);
}
