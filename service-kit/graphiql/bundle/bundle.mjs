// Puts GraphiQL, React and their style into one page that loads nothing from elsewhere:
// `npm ci && npm run bundle` writes ../graphiql.html. Absent on purpose: the embedded fonts,
// which are two thirds of the style; the browser's own do.
import { readFileSync, writeFileSync } from 'node:fs';

const read = (path) => readFileSync(new URL(`node_modules/${path}`, import.meta.url), 'utf8');
const script = (path) => read(path).replaceAll('</script', '<\\/script').replace(/\n\/\/# sourceMappingURL=.*/g, '');
const version = (name) => JSON.parse(read(`${name}/package.json`)).version;
const license = (name) => `${name} ${version(name)}\n\n${read(`${name}/LICENSE`).trim()}`;

const parts = {
  STYLE: read('graphiql/graphiql.min.css').replace(/@font-face\{[^}]*\}/g, ''),
  REACT: script('react/umd/react.production.min.js'),
  REACT_DOM: script('react-dom/umd/react-dom.production.min.js'),
  GRAPHIQL: script('graphiql/graphiql.min.js'),
  LICENSES: ['graphiql', 'react', 'react-dom'].map(license).join('\n\n---\n\n'),
};
const frame = readFileSync(new URL('page.html', import.meta.url), 'utf8');
const page = frame.replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name].trim());
writeFileSync(new URL('../graphiql.html', import.meta.url), page);
