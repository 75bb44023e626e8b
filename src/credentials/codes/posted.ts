import type { Message } from './find-code.ts';

/** Under these names, programs that forward mails and messages send their parts. Case, `-` and `_` do not count. */
const names: Record<string, keyof Message> = {
  subject: 'subject',
  title: 'subject',
  text: 'text',
  plain: 'text',
  textbody: 'text',
  bodyplain: 'text',
  strippedtext: 'text',
  body: 'text',
  message: 'text',
  content: 'text',
  msg: 'text',
  sms: 'text',
  code: 'text',
  html: 'html',
  htmlbody: 'html',
  bodyhtml: 'html',
};
const deepest = 6;
const mostValues = 1000;

/** What a program posted: JSON, a form, or a text. In JSON and forms, the values of known names count; without any, all values. */
export function postedMessage(type: string, body: string): Message {
  const kind = type.toLowerCase();
  if (kind.includes('x-www-form-urlencoded')) return partsOf([...new URLSearchParams(body)].slice(0, mostValues));
  if (kind.includes('json') || /^\s*[{[]/.test(body.slice(0, 100))) {
    const values = jsonValues(body);
    if (values) return partsOf(values);
  }
  return kind.includes('html') ? { html: body } : { text: body };
}

type Entry = [name: string, value: string];

function partsOf(entries: Entry[]): Message {
  const parts: Record<keyof Message, string[]> = { subject: [], text: [], html: [] };
  for (const [name, value] of entries) {
    const part = names[name.toLowerCase().replace(/[-_]/g, '')];
    if (part) parts[part].push(value);
  }
  const isKnown = Object.values(parts).some(({ length }) => length > 0);
  if (!isKnown) parts.text = entries.map(([, value]) => value);
  return { subject: parts.subject.join('\n'), text: parts.text.join('\n'), html: parts.html.join('\n') };
}

/** The texts and numbers of JSON, each with its name. Undefined for something that is no JSON. */
function jsonValues(body: string): Entry[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const found: Entry[] = [];
  const collect = (name: string, one: unknown, depth: number): void => {
    if (found.length >= mostValues || depth > deepest) return;
    if (typeof one === 'string' || typeof one === 'number') found.push([name, String(one)]);
    else if (typeof one === 'object' && one !== null)
      for (const [key, inner] of Object.entries(one)) collect(Array.isArray(one) ? name : key, inner, depth + 1);
  };
  collect('', value, 0);
  return found;
}
