import { errors } from '../../errors.ts';
import type { PdfOptions } from './schema.ts';

/** Sizes of paper in inches. */
const formats: Record<string, [width: number, height: number]> = {
  letter: [8.5, 11],
  legal: [8.5, 14],
  tabloid: [11, 17],
  ledger: [17, 11],
  a0: [33.1102, 46.811],
  a1: [23.3858, 33.1102],
  a2: [16.5354, 23.3858],
  a3: [11.6929, 16.5354],
  a4: [8.2677, 11.6929],
  a5: [5.8268, 8.2677],
  a6: [4.1339, 5.8268],
};

const perInch: Record<string, number> = { px: 96, in: 1, cm: 2.54, mm: 25.4 };

/** A length in inches, as CDP takes it. Numbers, and texts without a unit, are pixels. */
export function inches(length: string | number): number {
  const [, value = '0', unit = 'px'] = /^([\d.]+)([a-z]*)$/.exec(String(length)) ?? [];
  return Number(value) / (perInch[unit || 'px'] ?? 96);
}

/** The options of a PDF as CDP has them. */
export function printing(options: PdfOptions) {
  const { format = 'letter', width, height, margin = {}, tagged, outline, ...rest } = options;
  const size = Object.hasOwn(formats, format.toLowerCase()) ? formats[format.toLowerCase()] : undefined;
  if (!size)
    throw errors.invalid_input({
      detail: `options.format is not a known paper format: ${Object.keys(formats).join(', ')}.`,
    });
  const { landscape, printBackground, scale, displayHeaderFooter, headerTemplate, footerTemplate } = rest;
  return {
    landscape: landscape ?? false,
    printBackground: printBackground ?? false,
    scale: scale ?? 1,
    displayHeaderFooter: displayHeaderFooter ?? false,
    headerTemplate: headerTemplate ?? '',
    footerTemplate: footerTemplate ?? '',
    pageRanges: rest.pageRanges ?? '',
    preferCSSPageSize: rest.preferCSSPageSize ?? false,
    paperWidth: width === undefined ? size[0] : inches(width),
    paperHeight: height === undefined ? size[1] : inches(height),
    marginTop: inches(margin.top ?? 0),
    marginRight: inches(margin.right ?? 0),
    marginBottom: inches(margin.bottom ?? 0),
    marginLeft: inches(margin.left ?? 0),
    generateTaggedPDF: tagged ?? true,
    generateDocumentOutline: outline ?? false,
  };
}
