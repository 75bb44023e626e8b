/** The renderer, which the page loads before this script: a file of the package @scalar/fastify-api-reference. */
declare const Scalar: { createApiReference(selector: string, options: object): unknown };

// An earlier page kept the key in the browser, where any script of this origin could read it. This one loses it with the page.
localStorage.removeItem('authorized');

Scalar.createApiReference('#reference', {
  url: '/docs/reference.json',
  persistAuth: false,
  authentication: { preferredSecurityScheme: 'bearerAuth' },
  hiddenClients: true, // the samples in the document are those that were run
  defaultOpenFirstTag: true,
  defaultOpenAllTags: false,
  hideModels: true,
  documentDownloadType: 'none',
  showDeveloperTools: 'never',
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  proxyUrl: '',
});
