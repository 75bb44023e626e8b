import { createTheme, darken, type CSSVariablesResolver } from '@mantine/core';
import { colour, fonts, type Scheme } from '../../src/lib/look.ts';

/** The colours of all pages of the service, as variables of the components. */
export const theme = createTheme({
  primaryColor: 'corral',
  primaryShade: 8,
  colors: {
    corral: [
      '#eef3ff',
      '#dbe6ff',
      '#c3d6ff',
      colour('accent-pressed', 'dark'),
      colour('accent', 'dark'), // links in the dark
      '#6f9bf7',
      '#4a7ae6',
      '#2f63d8',
      colour('accent', 'light'),
      colour('accent-pressed', 'light'),
    ],
    dark: [
      colour('text', 'dark'),
      colour('quiet', 'dark'),
      '#8b939d',
      colour('strong-line', 'dark'),
      colour('line', 'dark'),
      '#262b32',
      colour('sunken', 'dark'),
      colour('page', 'dark'),
      colour('card', 'dark'),
      '#0b0d10',
    ],
  },
  fontFamily: fonts.plain,
  fontFamilyMonospace: fonts.code,
  defaultRadius: 'sm',
  cursorType: 'pointer',
  autoContrast: true,
  respectReducedMotion: true,
  components: { Modal: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } } },
});

/** The components' own greys, badges and links have a contrast of 2.5 to 4.3 where text that is not large needs 4.5. */
export const legible: CSSVariablesResolver = ({ colors }) => ({
  variables: {},
  light: {
    ...shared('light'),
    '--mantine-color-error': 'var(--mantine-color-red-9)',
    ...Object.fromEntries(
      Object.entries(colors).flatMap(([name, shades]) => [
        [`--mantine-color-${name}-text`, darken(shades[9], 0.3)],
        [`--mantine-color-${name}-light-color`, darken(shades[9], 0.4)],
        [`--mantine-color-${name}-light-hover`, `var(--mantine-color-${name}-1)`],
      ]),
    ),
  },
  dark: {
    ...shared('dark'),
    '--mantine-color-error': 'var(--mantine-color-red-4)',
    '--mantine-color-red-light-color': 'var(--mantine-color-red-3)', // what ends something is red in the dark too
  },
});

const shared = (scheme: Scheme) => ({
  '--mantine-color-text': colour('text', scheme),
  '--mantine-color-dimmed': colour('quiet', scheme),
  '--mantine-color-placeholder': colour('quiet', scheme),
  '--mantine-color-default-border': colour('line', scheme),
  '--card': colour('card', scheme),
  '--row-hover': colour('sunken', scheme),
  '--stage': colour('card', 'dark'), // of live views and terminals, which are always dark
});
