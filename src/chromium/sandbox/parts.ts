/** A system part that Corral uses, as `npm run doctor` lists it. */
interface Part {
  /** Its Debian package. */
  readonly name: string;
  /** Where it is; undefined where it is missing. */
  readonly path?: string;
  /** What there is not, without it. */
  readonly without: string;
}

/** Paths of the browsers when they are not where distributions install them; empty for those. */
interface BrowserPaths {
  readonly chromium: string;
  readonly headlessShell: string;
}

/** The doctor also runs where nothing is built, so its list is a script of the package. */
const { findParts } = (await import(new URL('../../../scripts/parts.mjs', import.meta.url).href)) as {
  findParts(paths: BrowserPaths): Part[];
};

/** What the service finds on this machine, by the list of the doctor. */
export const systemParts = (paths: BrowserPaths): Part[] => findParts(paths);

/** A sentence for each part that is missing now, so that an installation is noticed without a restart. */
export function missingParts(paths: BrowserPaths): string[] {
  const missing = systemParts(paths).filter(({ path }) => path === undefined);
  return missing.map(({ name, without }) => `${name} is not installed; switched off: ${without}.`);
}
