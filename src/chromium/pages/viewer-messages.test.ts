import { describe, expect, it } from 'vitest';
import { addressOf, destinationOf, readViewerMessage, viewerBounds } from './viewer-messages.ts';

const read = (value: unknown) => readViewerMessage(Buffer.from(JSON.stringify(value)));
const mouse = { type: 'mouse', event: 'move', x: 1, y: 2, button: 'none', buttons: 0, clickCount: 0, modifiers: 0 };

describe('a message of a viewer', () => {
  it('is understood', () => {
    expect(read(mouse)).toEqual(mouse);
    expect(read({ type: 'ack' })).toEqual({ type: 'ack' });
  });

  it.each([
    null,
    7,
    [],
    {},
    { type: 'constructor' },
    { type: ['mouse'] },
    { ...mouse, x: null },
    { ...mouse, x: '1' },
    { ...mouse, x: 1e9 },
    { ...mouse, button: 'leftish' },
    { ...mouse, modifiers: 1.5 },
    { type: 'text' },
    { type: 'text', text: 'x'.repeat(1024 * 1024 + 1) },
    { type: 'size', width: 0, height: 10 },
    { type: 'quality', level: 'best' },
    { type: 'answer', accept: 'yes', text: '' },
    { type: 'choose', id: 1, index: -1 },
    { type: 'choose', id: 0, index: 1 },
    { type: 'setValue', id: 1, value: 'x'.repeat(1001) },
    { type: 'dismiss' },
    { type: 'offerFiles', chooser: 1, x: 0, y: 0, files: [{ name: 'x'.repeat(256), size: 1 }] },
    { type: 'offerFiles', chooser: 1, x: 0, y: 0, files: [{ name: 'x', size: -1 }] },
    { type: 'offerFiles', chooser: 1, x: 0, y: 0, files: Array.from({ length: 1001 }, () => ({ name: 'x', size: 1 })) },
    { type: 'fileBytes', data: 'x'.repeat(512 * 1024 + 1) },
    { type: 'save' },
  ])('is not %j', (value) => expect(read(value)).toBeUndefined());

  it('must be JSON', () => {
    expect(readViewerMessage(Buffer.from('{"type":"ack"'))).toBeUndefined();
    expect(readViewerMessage(Buffer.from([0xff, 0x00]))).toBeUndefined();
  });

  it('is limited for read-only viewers', () => {
    const watch = (value: unknown) => readViewerMessage(Buffer.from(JSON.stringify(value)), true);
    for (const message of [
      { type: 'ack' },
      { type: 'follow', on: false },
      { type: 'size', width: 800, height: 600 },
      { type: 'selectTab', id: 'x'.repeat(64) },
    ])
      expect(watch(message)).toEqual(message);
    for (const message of [
      { type: 'newTab' },
      { type: 'fit', width: 800, height: 600 },
      { type: 'copy', cut: false },
      { type: 'choose', id: 1, index: 0 },
      { type: 'downloads' },
      { type: 'save', name: 'x' },
      { type: 'noFiles', chooser: 0 },
      { type: 'openTab', address: 'example.com' },
    ]) {
      expect(read(message)).toEqual(message);
      expect(watch(message)).toBeUndefined();
    }
    expect(watch({ type: 'ack', more: 'x'.repeat(1024) })).toBeUndefined();
  });

  it('may be long, but has no more values than a list of files', () => {
    const paste = { type: 'paste', text: '{},'.repeat(300_000) };
    expect(read(paste)).toEqual(paste);
    const files = Array.from({ length: 1000 }, () => ({ name: 'x', size: 1 }));
    const offer = { type: 'offerFiles', chooser: 1, x: 0, y: 0, files };
    expect(read(offer)).toEqual(offer);
    expect(read({ type: 'ack', more: Array.from({ length: 6000 }, () => ({})) })).toBeUndefined();
  });

  it('is bounded in size, and in number', () => {
    const beyond = viewerBounds();
    expect(beyond(Buffer.alloc(1024 * 1024))).toBeUndefined();
    expect(beyond(Buffer.alloc(2 * 1024 * 1024))?.code).toBe(1009);
    const faults = Array.from({ length: 3000 }, () => beyond(Buffer.alloc(2)));
    expect(faults.at(-1)?.code).toBe(1008);
  });

  it('is short if the viewer only watches, and few bytes come in a second', () => {
    const beyond = viewerBounds(true);
    expect(beyond(Buffer.alloc(10 * 1024))).toBeUndefined();
    expect(beyond(Buffer.alloc(64 * 1024 + 1))?.code).toBe(1009);
    const faults = Array.from({ length: 30 }, () => beyond(Buffer.alloc(10 * 1024)));
    expect(faults.some((fault) => fault?.code === 1008)).toBe(true);
  });
});

describe('an address', () => {
  it.each([
    ['example.com', 'https://example.com/'],
    [' example.com/a b?c#d ', 'https://example.com/a%20b?c#d'],
    ['http://example.com', 'http://example.com/'],
    ['localhost:3000/x', 'http://localhost:3000/x'],
    ['127.0.0.1', 'http://127.0.0.1/'],
    ['[::1]:80', 'http://[::1]/'],
    ['intranet:8080', 'https://intranet:8080/'],
    ['https://intranet', 'https://intranet/'],
    ['about:blank', 'about:blank'],
    ['data:text/html,hi', 'data:text/html,hi'],
  ])('%s is %s', (text, url) => expect(addressOf(text)).toBe(url));

  it.each([
    '',
    'two words',
    'word',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'chrome://settings',
    'ftp://example.com',
  ])('%j is not an address', (text) => expect(addressOf(text)).toBeUndefined());
});

describe('a text in the address bar', () => {
  const engine = 'https://search.test/?q=%s&from=here';
  it.each([
    ['example.com', 'https://example.com/'],
    ['two words', 'https://search.test/?q=two%20words&from=here'],
    ['word', 'https://search.test/?q=word&from=here'],
    ['what is a: b?', 'https://search.test/?q=what%20is%20a%3A%20b%3F&from=here'],
    ['$& and 100% \ud800', 'https://search.test/?q=%24%26%20and%20100%25%20%EF%BF%BD&from=here'],
    ['javascript:alert(1)', undefined],
    ['file:///etc/passwd', undefined],
    ['  ', undefined],
  ])('%j opens %j', (text, url) => expect(destinationOf(text, engine)).toBe(url));

  it('is searched for if its host would have more than 300 letters', () => {
    const text = `${'é'.repeat(16_000)}.example`;
    expect(destinationOf(text, 'https://search.test/?q=%s')).toBe(`https://search.test/?q=${encodeURIComponent(text)}`);
    expect(destinationOf(`https://${text}`, 'https://search.test/?q=%s')).toBeUndefined();
  });

  it('is searched for only where there is a search engine', () =>
    expect(destinationOf('two words', '')).toBeUndefined());
});
