import { settings, type Config } from '../config.ts';
import { redactedAddress } from '../lib/redacted-address.ts';

type Key = keyof typeof settings;

/**
 * Every setting with its value on this node, without secrets. `found` are values that the service detects where a setting is empty,
 * such as the paths of browsers.
 */
export function settingsInForce(config: Config, found: Partial<Record<Key, string>> = {}) {
  return (Object.keys(settings) as Key[]).map((key) => {
    const { name, fallback, meaning, read, secret } = settings[key];
    const given = textOf(config[key]);
    const value = given || found[key] || (fallback && 'off'); // an empty variable has its default, so a value that is empty now was switched off
    const shown = secret && value !== '' ? null : redactedAddress(value);
    return {
      name,
      value: shown,
      default: fallback,
      is_default: given === textOf(read(fallback)),
      redacted: shown !== value,
      meaning,
    };
  });
}

function textOf(value: string | number | boolean | object | undefined): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.join(',');
  if (typeof value === 'object')
    return Object.entries(value)
      .map(([name, of]) => `${name}:${of}`)
      .join(',');
  return String(value);
}
