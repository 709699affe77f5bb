import {defineConfig} from 'vite';

// The names of the built files carry no digests: the program's table of files stays the same, and each answer is
// revalidated. Nothing is inlined as data: URLs, which the page's policy forbids.
export default defineConfig({
  base: '/console/',
  esbuild: {jsx: 'automatic', jsxImportSource: 'preact', legalComments: 'inline'},
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        entryFileNames: 'console.js',
        chunkFileNames: '[name].js',
        assetFileNames: (asset) => (asset.names.some((name) => name.endsWith('.css')) ? 'console.css' : '[name][extname]'),
      },
    },
  },
  worker: {format: 'es', rollupOptions: {output: {entryFileNames: 'layout.js'}}},
});
