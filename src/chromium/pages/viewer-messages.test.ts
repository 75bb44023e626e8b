import { describe, expect, it } from 'vitest';
import { addressOf, onlyWatches, readViewerMessage } from './viewer-messages.ts';

const read = (value: unknown) => readViewerMessage(Buffer.from(JSON.stringify(value)));
const mouse = { type: 'mouse', event: 'move', x: 1, y: 2, button: 'none', buttons: 0, clickCount: 0, modifiers: 0 };

describe('what a viewer may say', () => {
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
    { type: 'answer', accept: 'yes', text: '' },
  ])('is not %j', (value) => expect(read(value)).toBeUndefined());

  it('is not what is no JSON', () => {
    expect(readViewerMessage(Buffer.from('{"type":"ack"'))).toBeUndefined();
    expect(readViewerMessage(Buffer.from([0xff, 0x00]))).toBeUndefined();
  });

  it('is little for those who only watch', () => {
    expect(onlyWatches({ type: 'ack' })).toBe(true);
    expect(onlyWatches({ type: 'newTab' })).toBe(false);
    expect(onlyWatches({ type: 'copy', cut: false })).toBe(false);
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
  ])('%j is none', (text) => expect(addressOf(text)).toBeUndefined());
});
