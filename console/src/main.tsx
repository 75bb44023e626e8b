import './nonce.ts';
import '@mantine/core/styles.css';
import './style.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queries } from './api/live.ts';
import { router } from './routes.tsx';
import { legible, theme } from './theme.ts';

// The address of the service itself shows the console; its screens have addresses below /console.
if (location.pathname === '/') history.replaceState(null, '', `/console${location.search}${location.hash}`);

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={legible} defaultColorScheme="auto">
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
