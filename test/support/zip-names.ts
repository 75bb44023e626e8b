import { fromBuffer, type Entry } from 'yauzl';

/** The names of the entries of a zip. */
export function namesIn(archive: Buffer): Promise<string[]> {
  return new Promise((resolve, reject) => {
    fromBuffer(archive, (error, zip) => {
      if (error) return reject(error);
      const names: string[] = [];
      zip.on('entry', ({ fileName }: Entry) => void names.push(fileName)).on('end', () => resolve(names));
    });
  });
}
